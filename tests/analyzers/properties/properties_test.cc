// Properties of the judgement of calls: random valid programs have no finding, one injected fault is found with its
// culprit, and nobody is wrongly named with high confidence.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <sstream>

#include "analyzers/analyzer.h"
#include "sim/replay/reference_replay.h"
#include "tests/support/cut.h"
#include "tests/support/oracle.h"
#include "tests/support/random_program.h"

namespace ddx {
namespace {

using testing::CallLists;
using testing::FaultKind;

Evidence evidence_of(Trace trace) {
  Evidence evidence;
  evidence.trace = std::move(trace);
  return evidence;
}

std::string told(const std::vector<Finding>& findings) {
  std::ostringstream out;
  for (const Finding& f : findings) {
    out << f.code << ' ' << name_of(f.severity) << ' ' << name_of(f.confidence) << ' ' << f.ranks.text() << ": "
        << f.summary << '\n';
  }
  return out.str();
}

class HealthyPrograms : public ::testing::TestWithParam<int> {};

TEST_P(HealthyPrograms, have_no_finding) {
  // 100 programs a part, each replayed in one of the two models and cut to ring buffers of unlike length.
  for (int i = 0; i < 100; ++i) {
    const auto seed = static_cast<std::uint64_t>(GetParam()) * 100 + static_cast<std::uint64_t>(i) + 1;
    testing::ProgramOptions program;
    program.seed = seed;
    sim::ReplayOptions model;
    model.stream_ordered = seed % 2 == 0;
    const auto result = sim::replay(testing::trace_of(testing::random_program(program)), model);
    ASSERT_EQ(result.outcome, sim::ReplayResult::Outcome::completes) << "seed " << seed << ": " << result.reason;
    testing::CutOptions ring;
    ring.seed = seed;
    if (seed % 5 != 0) ring.ring_min = 1, ring.ring_max = 40;
    ring.timing = seed % 3 != 0;
    ring.recorder_fields = seed % 4 == 0;
    const auto findings = analyzers::analyze(evidence_of(testing::cut(result, ring)));
    EXPECT_TRUE(findings.empty()) << "seed " << seed << '\n' << told(findings);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, HealthyPrograms, ::testing::Range(0, 10));

// How the culprit was told in many programs with one fault each.
struct Tally {
  int decidable = 0, named = 0, wrong_high = 0;
};

struct Verdict {
  bool named = false;       // an error names exactly the culprit
  bool wrong_high = false;  // an error with high confidence names somebody else
};

Verdict verdict_on(const std::vector<Finding>& findings, RankId culprit) {
  Verdict verdict;
  for (const Finding& f : findings) {
    if (f.severity != Severity::error || f.ranks.empty()) continue;
    if (f.ranks == RankSet{culprit}) verdict.named = true;
    if (!f.ranks.contains(culprit) && f.confidence == Confidence::high) verdict.wrong_high = true;
  }
  // Naming him beside somebody else in another finding is not naming him.
  for (const Finding& f : findings) {
    if (f.severity == Severity::error && !f.ranks.empty() && !f.ranks.contains(culprit)) verdict.named = false;
  }
  return verdict;
}

CallLists small_program(std::uint64_t seed) {
  testing::ProgramOptions program;
  program.seed = seed;
  program.world = 3 + static_cast<int>(seed % 6);
  program.steps = 2 + static_cast<int>(seed % 3);
  program.calls_a_step = 3 + static_cast<int>(seed % 4);
  return testing::random_program(program);
}

void judge_one(CallLists lists, FaultKind kind, std::uint64_t seed, Tally& tally) {
  const auto fault = testing::inject(lists, kind, seed);
  if (!fault) return;
  const auto culprits = testing::single_edit_culprits(lists);
  const RankId culprit(fault->rank);
  const bool decidable = culprits.size() == 1;
  if (decidable) {
    ASSERT_EQ(culprits.front(), culprit) << "the oracle";
  }
  const auto result = sim::replay(testing::trace_of(lists), {});
  testing::CutOptions whole;
  whole.dead_leave_dumps = true;
  const auto findings = analyzers::analyze(evidence_of(result.snapshot));
  const auto dumped = analyzers::analyze(evidence_of(testing::cut(result, whole)));
  const Verdict verdict = verdict_on(findings, culprit);
  const Verdict of_dumps = verdict_on(dumped, culprit);
  if (verdict.wrong_high || of_dumps.wrong_high) {
    ++tally.wrong_high;
    ADD_FAILURE() << "seed " << seed << ' ' << testing::name_of(kind) << " on rank " << fault->rank
                  << (decidable ? " (decidable)" : " (not decidable)") << ", told:\n"
                  << told(findings) << "of the dumps:\n"
                  << told(dumped) << testing::ops_text_of(lists);
  }
  if (!decidable) return;
  ++tally.decidable;
  if (verdict.named) ++tally.named;
  if (!verdict.named && std::getenv("DDX_TELL")) {
    std::printf("--- seed %llu %s on rank %d at %zu\n%s%s", static_cast<unsigned long long>(seed),
                std::string(testing::name_of(kind)).c_str(), fault->rank, fault->at, told(findings).c_str(),
                testing::ops_text_of(lists).c_str());
  }
}

TEST(OneFault, its_culprit_is_named) {
  std::map<FaultKind, Tally> tallies;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const FaultKind kind = testing::kAllFaults[seed % std::size(testing::kAllFaults)];
    judge_one(small_program(seed), kind, seed, tallies[kind]);
    if (HasFatalFailure()) return;
  }
  Tally all;
  for (const auto& [kind, tally] : tallies) {
    std::printf("%-12s decidable %4d, culprit named %4d, somebody else with high confidence %d\n",
                std::string(testing::name_of(kind)).c_str(), tally.decidable, tally.named, tally.wrong_high);
    all.decidable += tally.decidable;
    all.named += tally.named;
    all.wrong_high += tally.wrong_high;
  }
  EXPECT_GE(all.decidable, 300) << "too few to say anything";
  EXPECT_GE(all.named * 100, all.decidable * 99);
  EXPECT_EQ(all.wrong_high, 0);
}

}  // namespace
}  // namespace ddx
