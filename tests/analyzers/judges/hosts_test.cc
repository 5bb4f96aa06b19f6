#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzers/hosts/hosts.h"
#include "tests/analyzers/judges/story.h"

namespace ddx::analyzers {
namespace {

using test::brief;
using test::Story;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

NetAdapters adapters(std::initializer_list<const char*> names, const std::string& oob = "") {
  NetAdapters fact;
  for (const char* name : names) fact.adapters.push_back({std::int64_t(fact.adapters.size()), name, "RoCE"});
  fact.out_of_band = oob;
  return fact;
}
NetCompletionError completion(const std::string& peer, std::int64_t status) {
  NetCompletionError fact;
  fact.peer = peer;
  fact.status = status;
  fact.vendor_error = status == 12 ? 129 : 249;
  return fact;
}

// ---- network --------------------------------------------------------------------------------------------------------

TEST(Network, RetryExceededRightAfterStart) {
  Story story;
  story.on("node-a", 946).says(adapters({"mlx5_0"}, "eth0:192.0.2.5<0>"));
  story.on("node-a", 946).says(completion("192.0.2.147", 12));
  story.on("node-a", 946).says(ReturnCode{"include/net.h:32", 6});
  const auto findings = judge_network(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("network error high none"));
  EXPECT_THAT(findings[0].subjects, ElementsAre("link node-a <-> 192.0.2.147"));
  EXPECT_THAT(findings[0].summary, HasSubstr("retry exceeded"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("the data path never worked"));
  EXPECT_THAT(findings[0].advice, HasSubstr("NCCL_IB_GID_INDEX"));
}

TEST(Network, TheSameErrorAfterHoursOfWork) {
  Story story;
  story.at(100).on("node-a", 1).says(ProgressNotice{"step 1"});
  story.at(20000).on("node-a", 1).says(completion("192.0.2.147", 12));
  const auto findings = judge_network(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("network error high none"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("carried work before"));
  EXPECT_THAT(findings[0].advice, Not(HasSubstr("GID_INDEX")));
}

TEST(Network, AllBrokenLinksEndAtOneHost) {
  Story story;
  for (const char* host : {"node-a", "node-b", "node-c"}) story.on(host, 1).says(completion("192.0.2.9", 12));
  EXPECT_THAT(judge_network(story.evidence()).at(0).subjects.front(), "host 192.0.2.9");
}

TEST(Network, FlushedRequestsFollowTheFirstError) {
  Story story;
  story.on("a", 1).says(completion("192.0.2.9", 5)).on("a", 1).says(completion("192.0.2.8", 12));
  EXPECT_THAT(judge_network(story.evidence()).at(0).subjects, ElementsAre("link a <-> 192.0.2.8"));
}

TEST(Network, AnErrorTowardsTheDeadRanksHostIsItsEcho) {
  Story story;
  story.says(RankAddress{RankId(3), "node-c", "192.0.2.9"});
  ProcessEnd end;
  end.what = "KeyError: 'x'";
  story.by(3).says(end);
  story.by(0).on("node-a", 1).says(completion("192.0.2.9", 12));
  EXPECT_THAT(judge_network(story.evidence()), IsEmpty());
}

TEST(Network, PortEventAlone) {
  Story story;
  story.on("node-a", 1).says(NetAdapterError{"mlx5_1", "Got async event : port error"});
  const auto findings = judge_network(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("network warning medium none"));
  EXPECT_THAT(findings[0].subjects, ElementsAre("device mlx5_1 of node-a"));
}

TEST(Network, RefusedAndUnreachable) {
  Story refused;
  refused.by(1).on("b", 1).says(NetSocketError{"192.0.2.1", "connect", "Connection refused"});
  EXPECT_THAT(brief(judge_network(refused.evidence())), ElementsAre("network warning medium none"));
  Story unreachable;
  unreachable.by(1).on("b", 1).says(NetSocketError{"192.0.2.1", "connect", "No route to host"});
  EXPECT_THAT(brief(judge_network(unreachable.evidence())), ElementsAre("network error medium none"));
}

TEST(Network, RefusedAtFirstAndThenAtWorkIsHealthy) {
  Story story;
  story.by(1).says(NetSocketError{"192.0.2.1", "connect", "Connection refused"}).by(1).says(ProgressNotice{"step 1"});
  EXPECT_THAT(judge_network(story.evidence()), IsEmpty());
}

TEST(Network, AConnectionLostForNoShownReason) {
  Story story;
  story.by(1).says(NetSocketError{"192.0.2.1", "recv", "Connection reset by peer"});
  EXPECT_THAT(brief(judge_network(story.evidence())), ElementsAre("inconclusive info low none"));
}

// ---- adapters -------------------------------------------------------------------------------------------------------

NetChannel channel(std::int64_t number, bool sends, std::int64_t adapter) {
  NetChannel fact;
  fact.channel = number;
  fact.from = 0;
  fact.to = 1;
  fact.sends = sends;
  fact.transport = "NET/IB";
  fact.adapter = adapter;
  return fact;
}

TEST(Adapters, TwoAgainstOneThatCannotBeOpened) {
  Story story;
  story.in("a.log").on("node-a", 11).says(adapters({"rdma_0", "rdma_1"}));
  story.on("node-a", 11).says(channel(0, true, 0)).on("node-a", 11).says(channel(1, true, 1));
  story.in("b.log").on("node-b", 12).says(NetAdapterError{"rdma_1", "Unable to open device rdma_1"});
  story.on("node-b", 12).says(adapters({"rdma_0"}));
  story.on("node-b", 12).says(channel(0, false, 0)).on("node-b", 12).says(channel(1, false, 0));
  const auto findings = judge_adapters(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("nic-asymmetry error high none"));
  EXPECT_THAT(findings[0].subjects, ElementsAre("node-b rdma_1"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("channel 01 leaves node-a by NET/IB/1 and enters node-b by NET/IB/0"));
}

TEST(Adapters, CountsThatDifferAloneAreAWarning) {
  Story story;
  story.on("a", 1).says(adapters({"m0", "m1"})).on("b", 1).says(adapters({"m0"}));
  const auto findings = judge_adapters(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("nic-asymmetry warning medium none"));
  EXPECT_THAT(findings[0].subjects, ElementsAre("host b"));
}

TEST(Adapters, EqualCountsAreHealthyEvenCrossed) {
  Story story;
  story.on("a", 1).says(adapters({"m0", "m1"})).on("b", 1).says(adapters({"x0", "x1"}));
  story.on("a", 1).says(channel(0, true, 0)).on("b", 1).says(channel(0, false, 1));
  EXPECT_THAT(judge_adapters(story.evidence()), IsEmpty());
}

TEST(Adapters, NoDeviceFoundEverywhereIsHealthy) {
  Story story;
  for (const char* host : {"a", "b"}) story.on(host, 1).says(NetAdapterError{"", "NET/IB : No device found."});
  EXPECT_THAT(judge_adapters(story.evidence()), IsEmpty());
}

TEST(Adapters, OneHostGoesBySockets) {
  Story story;
  for (const char* host : {"a", "b", "c"}) {
    NetChannel fact = channel(0, true, 0);
    if (host[0] == 'c') fact.transport = "NET/Socket";
    story.on(host, 1).says(fact);
  }
  const auto findings = judge_adapters(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("nic-asymmetry error medium none"));
  EXPECT_THAT(findings[0].subjects, ElementsAre("host c"));
}

// ---- limits ---------------------------------------------------------------------------------------------------------

TEST(Limits, SharedMemoryIsFull) {
  Story story;
  story.on("pod-0", 21).says(SharedMemoryError{"", {}, "Call to posix_fallocate failed : No space left on device"});
  story.on("pod-0", 21)
      .says(SharedMemoryError{"nccl-shm-recv-0-1-3", 9637888,
                              "Error while creating shared memory segment nccl-shm-recv-0-1-3"});
  const auto findings = judge_host_limits(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("shm-small error high none"));
  EXPECT_THAT(findings[0].subjects, ElementsAre("host pod-0"));
  EXPECT_THAT(findings[0].summary, HasSubstr("9.2 MiB"));
  EXPECT_THAT(findings[0].advice, HasSubstr("--shm-size"));
}

TEST(Limits, LockedMemoryAndOpenFiles) {
  Story story;
  story.on("a", 1).says(NcclWarning{"ibvwrap.cc:1", "Call to ibv_reg_mr failed with error Cannot allocate memory"});
  story.on("a", 1).says(NcclWarning{"socket.cc:1", "Call to socket failed : Too many open files"});
  story.on("a", 1).says(NcclWarning{"x.cc:1", "Something else"});
  EXPECT_THAT(brief(judge_host_limits(story.evidence())),
              ElementsAre("memlock-low error medium none", "nofile-low error medium none"));
}

// ---- tuning, versions, names ----------------------------------------------------------------------------------------

TEST(Tuning, OneSizeDisagreesAnotherAgrees) {
  Story story;
  story.on("node-a", 1).says(TuningChoice{"", 1048576, 1, 2}).on("node-b", 2).says(TuningChoice{"", 1048576, 1, 0});
  story.on("node-a", 1).says(TuningChoice{"", 67108864, 1, 2}).on("node-b", 2).says(TuningChoice{"", 67108864, 1, 2});
  const auto findings = judge_tuning(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("host-asymmetry error medium none"));
  EXPECT_THAT(findings[0].subjects, ElementsAre("host node-a", "host node-b"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("disagree at 1,048,576 bytes; they agree at 67,108,864 bytes"));
}

TEST(Tuning, SeveralCommunicatorsOnEachHostMayChooseSeveralWays) {
  Story story;
  for (const char* host : {"a", "b"}) {
    story.on(host, 1)
        .says(TuningChoice{"AllReduce", 4096, 0, 0})
        .on(host, 1)
        .says(TuningChoice{"AllReduce", 4096, 1, 2});
  }
  EXPECT_THAT(judge_tuning(story.evidence()), IsEmpty());
}

TEST(Versions, NcclSaysSo) {
  Story story;
  story.on("a", 1).says(VersionMismatch{"rank 0 version 2.18.1 rank 8 version 2.19.3"});
  EXPECT_THAT(brief(judge_versions(story.evidence())), ElementsAre("version-skew error high none"));
}

TEST(Versions, TwoBannersDiffer) {
  Story story;
  story.on("a", 1).says(LibraryVersion{"2.18.1+cuda12.1"}).on("b", 1).says(LibraryVersion{"2.19.3+cuda12.1"});
  EXPECT_THAT(brief(judge_versions(story.evidence())), ElementsAre("version-skew warning medium none"));
}

TEST(Versions, AnotherCudaBuildIsTheSameVersion) {
  Story story;
  story.on("a", 1).says(LibraryVersion{"2.18.1+cuda12.1"}).on("b", 1).says(LibraryVersion{"2.18.1+cuda12.4"});
  EXPECT_THAT(judge_versions(story.evidence()), IsEmpty());
}

TEST(Names, ALogThatEndsCannotTellNotYetFromNever) {
  Story story;
  story.in("worker1.log").says(NameResolutionError{""});
  const auto findings = judge_names(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("addr-unresolved warning medium none"));
  EXPECT_THAT(findings[0].subjects, ElementsAre("log worker1.log"));
  EXPECT_THAT(findings[0].summary, HasSubstr("not yet there, or never"));
  EXPECT_THAT(findings[0].advice, HasSubstr("MASTER_ADDR need not change"));
}

TEST(Names, ALogThatGoesOnResolvedLater) {
  Story story;
  story.says(NameResolutionError{"job-0.svc"}).says(ProgressNotice{"step 1"});
  EXPECT_THAT(judge_names(story.evidence()).at(0).summary, HasSubstr("job-0.svc was not known on job.log at first"));
}

TEST(Hosts, AHealthyStartHasNoFinding) {
  Story story;
  for (const char* host : {"a", "b"}) {
    story.on(host, 1).says(LibraryVersion{"2.21.5"}).on(host, 1).says(adapters({"m0", "m1"}));
    story.on(host, 1).says(channel(0, host[0] == 'a', 0)).on(host, 1).says(TuningChoice{"AllReduce", 4096, 1, 2});
    story.on(host, 1).says(ProgressNotice{"step 1"});
  }
  for (auto run : {judge_network, judge_adapters, judge_host_limits, judge_tuning, judge_versions, judge_names}) {
    EXPECT_THAT(run(story.evidence()), IsEmpty());
  }
}

}  // namespace
}  // namespace ddx::analyzers
