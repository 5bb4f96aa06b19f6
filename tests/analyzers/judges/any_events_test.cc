// Whatever events a hostile log may give rise to, every judge ends, and each of its findings is whole.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "analyzers/checker/checker.h"
#include "analyzers/hosts/hosts.h"
#include "analyzers/launch/launch.h"
#include "analyzers/liveness/liveness.h"
#include "analyzers/liveness/stacks.h"
#include "tests/analyzers/judges/story.h"

namespace ddx::analyzers {
namespace {

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
  bool coin() { return below(2) == 0; }
  // Mostly small numbers, which collide, and now and then the ends of the range.
  std::int64_t number() {
    static constexpr std::int64_t kEnds[] = {INT64_MIN, INT64_MAX, -1, 0, INT32_MAX, std::int64_t{1} << 40};
    return below(8) == 0 ? kEnds[below(std::size(kEnds))] : static_cast<std::int64_t>(below(6));
  }
  std::uint64_t natural() { return static_cast<std::uint64_t>(number()); }
  RankId rank() { return RankId(number()); }
  std::string word() {
    static constexpr const char* kWords[] = {"",
                                             "0",
                                             "ALLREDUCE",
                                             "_ALLGATHER_BASE",
                                             "BROADCAST",
                                             "node-a",
                                             "192.0.2.1",
                                             "Connection refused",
                                             "INIT",
                                             "rdma_0",
                                             "No space left",
                                             "loss is nan",
                                             "NET/IB",
                                             "Timed out waiting",
                                             "eth0:192.0.2.5<0>",
                                             "x<:"};
    return kWords[below(std::size(kWords))];
  }
  template <class Value>
  std::optional<Value> maybe(Value value) {
    return coin() ? std::optional<Value>(std::move(value)) : std::nullopt;
  }

 private:
  std::mt19937 random_;
};

CollectiveFingerprint fingerprint(Dice& dice) {
  return {dice.rank(), dice.maybe(dice.natural()), dice.word(), dice.word(), dice.word(), dice.word()};
}

RasCommunicator ras(Dice& dice) {
  RasCommunicator comm;
  comm.id = dice.word();
  comm.status = dice.word();
  comm.size = dice.natural();
  for (std::size_t i = 0; i < dice.below(4); ++i) {
    RasCommunicator::Member member;
    member.rank = dice.rank();
    member.missing = dice.coin();
    member.unresponsive = dice.below(4) == 0;
    member.considered_dead = dice.below(4) == 0;
    member.error = dice.word();
    member.counts.emplace_back("AllReduce", dice.natural());
    comm.members.push_back(member);
  }
  for (std::size_t i = 0; i < dice.below(4); ++i) {
    comm.groups.push_back({"AllReduce", dice.natural(), dice.natural(), {dice.rank()}});
  }
  return comm;
}

CommInit comm_init(Dice& dice) {
  CommInit init;
  init.comm = dice.word();
  init.rank = dice.number();
  init.nranks = dice.number();
  init.bus_id = dice.word();
  init.comm_id = dice.word();
  init.complete = dice.coin();
  if (dice.coin()) {
    init.parent = dice.word();
    init.child_count = dice.number();
  }
  return init;
}

ProcessEnd process_end(Dice& dice) {
  ProcessEnd end;
  end.kind = static_cast<ProcessEnd::Kind>(dice.below(5));
  end.what = dice.word();
  end.signal = dice.maybe(dice.number());
  end.exit_code = dice.maybe(dice.number());
  end.secondary = dice.coin();
  return end;
}

TestsBanner banner(Dice& dice) {
  TestsBanner fact;
  for (std::size_t i = 0; i < dice.below(4); ++i) {
    fact.rows.push_back({RankId(static_cast<std::int64_t>(i)), dice.number(), dice.word(), dice.number(), dice.word()});
  }
  return fact;
}

HostStack host_stack(Dice& dice) {
  static constexpr const char* kCalls[] = {"", "recv", "send", "all_reduce", "recv"};
  HostStack stack;
  if (dice.coin()) stack.frames.push_back(dice.word());
  stack.distributed_call = kCalls[dice.below(std::size(kCalls))];
  stack.call_site = dice.word();
  stack.main_thread = dice.below(4) != 0;
  stack.timed_out = dice.coin();
  return stack;
}

LogFact fact(Dice& dice) {
  switch (dice.below(32)) {
    case 0:
      return WatchdogTimeout{dice.natural(),
                             dice.word(),
                             dice.maybe(dice.natural()),
                             dice.maybe(dice.natural()),
                             dice.maybe(dice.number()),
                             {}};
    case 1:
      return WatchdogStatus{dice.maybe(dice.natural()), dice.maybe(dice.natural()), dice.maybe(dice.natural()), {}};
    case 2: return HeartbeatStuck{dice.number()};
    case 3:
      return StoreBarrier{dice.rank(), "k:" + std::to_string(dice.number()), dice.number(), dice.number(), {},
                          dice.coin()};
    case 4: return StoreJoin{dice.rank(), "k:1"};
    case 5: return WrapperMismatch{fingerprint(dice), dice.maybe(fingerprint(dice)), dice.word()};
    case 6: return BarrierDeviceGuess{dice.number()};
    case 7: return comm_init(dice);
    case 8: return NcclWarning{dice.word(), "Invalid rank requested : " + std::to_string(dice.number()) + "/9"};
    case 9: return DeviceDuplicate{dice.rank(), dice.rank(), dice.word(), dice.maybe(dice.number())};
    case 10: return BootstrapDuplicate{dice.rank(), dice.number()};
    case 11: return BootstrapSizeMismatch{dice.number(), dice.number()};
    case 12: return VersionMismatch{dice.word()};
    case 13: return LibraryVersion{dice.word()};
    case 14: return ReturnCode{dice.word(), dice.number()};
    case 15: return NetAdapters{{{dice.number(), dice.word(), dice.word()}}, dice.word()};
    case 16: return NetAdapterError{dice.word(), "Unable to open device; port error"};
    case 17:
      return NetChannel{dice.number(), dice.number(), dice.number(),
                        dice.coin(),   dice.word(),   dice.maybe(dice.number())};
    case 18: return NetCompletionError{dice.word(), dice.number(), dice.maybe(dice.number())};
    case 19: return NetSocketError{dice.word(), dice.word(), dice.word()};
    case 20: return NameResolutionError{dice.word()};
    case 21: return SharedMemoryError{dice.word(), dice.maybe(dice.natural()), dice.word()};
    case 22: return TuningChoice{dice.word(), dice.natural(), dice.number(), dice.number()};
    case 23: return process_end(dice);
    case 24:
      return ElasticFailure{dice.maybe(dice.rank()), {}, dice.maybe(dice.number()), "received by PID 99", dice.coin()};
    case 25: return AttemptStart{static_cast<std::uint32_t>(dice.number())};
    case 26: return banner(dice);
    case 27: return ras(dice);
    case 28: return IdleNotice{dice.word(), dice.maybe(dice.number())};
    case 29: return NanNotice{dice.word()};
    case 30: return host_stack(dice);
    default: return RankAddress{dice.rank(), dice.word(), dice.word()};
  }
}

Evidence any_evidence(unsigned seed) {
  Dice dice(seed);
  test::Story story;
  if (dice.coin()) story.world(static_cast<std::uint32_t>(dice.number()));
  const std::size_t lines = 1 + dice.below(40);
  for (std::size_t i = 0; i < lines; ++i) {
    story.in("log" + std::to_string(dice.below(3)));
    if (dice.coin()) story.by(dice.number());
    if (dice.coin()) story.on(dice.word(), dice.number());
    story.says(fact(dice));
    LogEvent& event = story.evidence().events.back();
    event.time = dice.maybe(dice.number());
    event.time_of_day = dice.coin();
    event.group = dice.word();
    if (dice.below(4) == 0) event.attempt = static_cast<std::uint32_t>(dice.number());
  }
  return story.evidence();
}

TEST(AnyEvents, EveryFindingIsWhole) {
  const auto judges = {judge_process_ends, judge_absence,  judge_host_timeouts, judge_watchdog, judge_store_barrier,
                       judge_worlds,       judge_identity, judge_devices,       judge_network,  judge_adapters,
                       judge_host_limits,  judge_tuning,   judge_versions,      judge_names,    judge_wrapper,
                       judge_ras,          judge_idle,     judge_nan,           judge_stacks};
  std::set<std::string> codes;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    const Evidence evidence = any_evidence(seed);
    for (const auto& judge : judges) {
      for (const Finding& finding : judge(evidence)) {
        codes.insert(finding.code);
        EXPECT_FALSE(finding.code.empty()) << "seed " << seed;
        EXPECT_FALSE(finding.summary.empty()) << finding.code << " seed " << seed;
        EXPECT_FALSE(finding.advice.empty()) << finding.code << " seed " << seed;
        EXPECT_FALSE(finding.evidence.empty()) << finding.code << " seed " << seed;
        EXPECT_TRUE(finding.ranks.common(finding.victims).empty()) << finding.code << " seed " << seed;
        EXPECT_LE(finding.evidence.size(), 20u) << finding.code << " seed " << seed;
      }
    }
  }
  EXPECT_GE(codes.size(), 20u);  // the events do lead to findings of many kinds
}

}  // namespace
}  // namespace ddx::analyzers
