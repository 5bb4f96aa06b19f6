// From files to findings: the logs of public reports, made alike, and what must and must not be concluded from them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzers/analyzer.h"
#include "tests/analyzers/judges/story.h"
#include "traces/formats/loader.h"

namespace ddx::analyzers {
namespace {

using test::brief;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Case {
  std::string folder;
  std::string finding;            // code, severity, confidence, ranks
  std::vector<std::string> says;  // in summary, explanation or advice
  std::vector<std::string> says_not;
  std::vector<std::string> subjects;  // among others
};

std::string by_folder(const ::testing::TestParamInfo<Case>& tested) { return tested.param.folder; }

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.folder; }

class CaseFiles : public ::testing::TestWithParam<Case> {};

std::vector<Finding> findings_in(const std::string& folder) {
  const std::string path = DDX_SOURCE_DIR "/tests/analyzers/judges/cases/" + folder;
  return analyze(formats::load({path}, formats::LoadOptions{}));
}

TEST_P(CaseFiles, TheFirstFindingSaysWhatItMust) {
  const Case& expected = GetParam();
  const std::vector<Finding> findings = findings_in(expected.folder);
  ASSERT_THAT(findings, Not(IsEmpty()));
  EXPECT_EQ(brief(findings[0]), expected.finding);
  // What else is told names nobody.
  for (std::size_t i = 1; i < findings.size(); ++i)
    EXPECT_THAT(brief(findings[i]), HasSubstr(" info ")) << findings[i].summary;
  for (std::size_t i = 1; i < findings.size(); ++i) EXPECT_TRUE(findings[i].ranks.empty()) << findings[i].summary;
  const std::string told = findings[0].summary + "\n" + findings[0].explanation + findings[0].advice;
  for (const std::string& part : expected.says) EXPECT_THAT(told, HasSubstr(part));
  for (const std::string& part : expected.says_not) EXPECT_THAT(told, Not(HasSubstr(part)));
  for (const std::string& subject : expected.subjects) EXPECT_THAT(findings[0].subjects, ::testing::Contains(subject));
  EXPECT_THAT(findings[0].evidence, Not(IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(
    Launch, CaseFiles,
    ::testing::Values(
        Case{"split_launch",
             "launch-split error high none",
             {"2 communicators of 8", "instead of one of 16", "bandwidth"},
             {},
             {"host node-a", "host node-b"}},
        Case{"one_of_two_arrived",
             "rank-missing error high 1",
             {"1 of 2 arrived", "Why is not in these lines"},
             {"network"},
             {}},
        Case{"double_launch", "launch-double error high none", {"rank 2", "one task per GPU"}, {"raise the time"}, {}},
        Case{"one_device_for_all",
             "device-duplicate error high 0-7",
             {"bus id 1000", "CUDA device 0", "one cause"},
             {},
             {}},
        Case{"barrier_guesses_device",
             "barrier-device error high 1",
             {"GPU 0", "set_device(LOCAL_RANK)"},
             {"download"},
             {}},
        Case{"counted_by_attempts", "stale-store error medium none", {"4 attempts", "attempt 0"}, {"12 extra"}, {}}),
    by_folder);

INSTANTIATE_TEST_SUITE_P(
    Liveness, CaseFiles,
    ::testing::Values(Case{"sizes_in_watchdog_lines",
                           "mismatch-size error high 0",
                           {"209,715,200", "104,857,600", "not the network"},
                           {},
                           {"seq 1"}},
                      Case{"crash_seen_elsewhere",
                           "dead-rank error high 3",
                           {"Segmentation fault", "431 ms later", "6 (remote error"},
                           {"report it"},
                           {}},
                      Case{"raises_without_dump",
                           "dead-rank error high 2",
                           {"KeyError: '_sample_idx'", "rank 2 left none"},
                           {"cannot analyse"},
                           {}},
                      Case{"behind_in_enqueueing", "lagging-rank warning low 6", {"ranks 0-4", "unseen"}, {}, {}},
                      Case{"all_entered",
                           "stuck-in-collective error medium none",
                           {"right for 8 ranks", "consequence"},
                           {"raise the heartbeat"},
                           {}},
                      Case{"oom_kill_by_slurm", "dead-rank error high 5", {"out of memory"}, {}, {"host node-b"}}),
    by_folder);

INSTANTIATE_TEST_SUITE_P(Hosts, CaseFiles,
                         ::testing::Values(Case{"name_not_resolved",
                                                "addr-unresolved warning medium none",
                                                {"not yet", "MASTER_ADDR need not change"},
                                                {},
                                                {}},
                                           Case{"link_retry_exceeded",
                                                "network error high none",
                                                {"retry exceeded", "never worked", "NCCL_IB_GID_INDEX"},
                                                {"rank 0"},
                                                {"link node-a <-> 192.0.2.147"}},
                                           Case{"adapter_not_opened",
                                                "nic-asymmetry error high none",
                                                {"channel 01", "that is the root"},
                                                {},
                                                {"node-b rdma_1"}},
                                           Case{"shared_memory_full",
                                                "shm-small error high none",
                                                {"9.2 MiB", "not a disk"},
                                                {"disk full"},
                                                {"host pod-0"}},
                                           Case{"tuning_differs",
                                                "host-asymmetry error medium none",
                                                {"disagree at 1,048,576 bytes", "NCCL_PROTO"},
                                                {},
                                                {"host node-a", "host node-b"}}),
                         by_folder);

INSTANTIATE_TEST_SUITE_P(
    Checker, CaseFiles,
    ::testing::Values(
        Case{"checker_counts_wrong", "checker-suspect warning high none", {"1,923,775,323", "PyTorch 2.1"}, {}, {}},
        Case{"ras_few_ahead",
             "inconclusive info medium none",
             {"12,13 are ahead, not at fault", "second report"},
             {},
             {}},
        Case{"idle_engine", "no-fault info high none", {"No hang"}, {}, {}}),
    by_folder);

TEST(Healthy, StartAndSteps) { EXPECT_THAT(findings_in("healthy_start"), IsEmpty()); }

}  // namespace
}  // namespace ddx::analyzers
