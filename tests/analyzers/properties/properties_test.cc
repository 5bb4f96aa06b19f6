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
#include "tests/support/ops_text.h"
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

// A healthy job in mid-run, as dumps show it.
struct RunningJob {
  CallLists lists;
  Trace dumps;
  RankSet running;  // ranks whose host or device could go on: all that others wait for ends at one of these
};

// `skew`: ranks dump up to so many turns later than the first of them, as no watchdog fires everywhere at once.
RunningJob running_job(std::uint64_t seed, std::uint64_t skew, bool rings_overflow) {
  std::mt19937_64 random(seed);
  testing::ProgramOptions program;
  program.seed = seed;
  program.world = 2 + static_cast<int>(seed % 7);
  program.steps = 1 + static_cast<int>(seed % 4);
  RunningJob job;
  job.lists = testing::random_program(program);
  std::uint64_t calls = 0;
  for (const auto& list : job.lists.ranks) calls += list.size();
  sim::ReplayOptions model;
  model.stream_ordered = seed % 2 == 0;
  model.visit_seed = seed;
  model.stop_after = testing::draw(random, calls);
  const std::uint64_t first = *model.stop_after;
  const Trace trace = testing::trace_of(job.lists);
  sim::ReplayResult result = sim::replay(trace, model);
  job.running = result.running;
  for (RankRecord& record : result.snapshot.ranks) {
    if (skew == 0) break;
    model.stop_after = first + testing::draw(random, skew);
    const Trace later = sim::replay(trace, model).snapshot;
    const auto at = static_cast<std::size_t>(&record - result.snapshot.ranks.data());
    const ProgramId made(result.snapshot.programs.size());
    result.snapshot.programs.push_back(later.program(later.ranks[at]));
    record = later.ranks[at];
    record.program = made;
  }
  testing::CutOptions ring;
  ring.seed = seed;
  ring.timing = seed % 3 != 0;
  if (rings_overflow && seed % 5 == 0) ring.ring_min = 1, ring.ring_max = 40;
  job.dumps = testing::cut(result, ring);
  return job;
}

// False alarms by code and confidence: how many, and the smallest job that raises one.
class Alarms {
 public:
  void add(const Finding& f, std::uint64_t seed, const RunningJob& job) {
    auto& [count, smallest] = all_[f.code + ' ' + std::string(name_of(f.confidence))];
    ++count;
    std::string text = "seed " + std::to_string(seed) + ", could go on: ranks " + job.running.text() + "; " +
                       told({f}) + testing::text_of(job.dumps) + "of the job:\n" + testing::ops_text_of(job.lists);
    if (smallest.empty() || text.size() < smallest.size()) smallest = std::move(text);
  }
  std::string text() const {
    std::string text;
    for (const auto& [key, alarm] : all_) {
      text += "---- " + key + ": " + std::to_string(alarm.first) + ", the smallest: " + alarm.second;
    }
    return text;
  }

 private:
  std::map<std::string, std::pair<int, std::string>> all_;
};

// Somebody is behind in every running job, and dumps cannot tell one who is about to come from one who never will. So
// it is right to name ranks that others wait for and that wait for nobody, as missing; anything else is a false alarm.
bool is_absence(const Finding& f) {
  return f.code == "missing-ranks" || f.code == "lagging-rank" || f.code == "stuck-host";
}

Alarms false_alarms(std::uint64_t skew, bool rings_overflow, Confidence least) {
  Alarms alarms;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    const RunningJob job = running_job(seed, skew, rings_overflow);
    for (const Finding& f : analyzers::analyze(evidence_of(job.dumps))) {
      if (f.severity != Severity::error || f.confidence < least || f.ranks.empty()) continue;
      // What runs at the first dump need not at the last.
      const bool could_go_on = skew > 0 || f.ranks.without(job.running).empty();
      if (!is_absence(f) || !could_go_on) alarms.add(f, seed, job);
    }
  }
  return alarms;
}

void expect_none(const Alarms& alarms) {
  if (const std::string text = alarms.text(); !text.empty()) ADD_FAILURE() << text;
}

TEST(RunningJobs, nobody_who_waits_is_blamed) { expect_none(false_alarms(0, false, Confidence::medium)); }

TEST(RunningJobs, nobody_is_surely_blamed_by_rings_and_dumps_of_unlike_times) {
  expect_none(false_alarms(0, true, Confidence::high));
  expect_none(false_alarms(60, true, Confidence::high));
}

// How the culprit was told in many programs with one fault each.
struct Tally {
  int decidable = 0, named = 0;    // by whole programs
  int in_dumps = 0, by_dumps = 0;  // decidable by dumps; named
  int wrong_high = 0, circles = 0;
};

struct Verdict {
  bool named = false;       // an error names exactly the culprit
  bool wrong_high = false;  // an error with high confidence names others than those who can be at fault
  bool circle = false;      // ... all of a circle, which `possible` is only a part of
};

Verdict verdict_on(const std::vector<Finding>& findings, RankId culprit, const RankSet& possible) {
  Verdict verdict;
  for (const Finding& f : findings) {
    if (f.severity != Severity::error || f.ranks.empty()) continue;
    if (f.ranks == RankSet{culprit}) verdict.named = true;
    const bool right = f.ranks == RankSet{culprit} || f.ranks == possible;
    if (right || f.confidence != Confidence::high) continue;
    (f.code == "order-cross-group" && f.ranks.contains(culprit) ? verdict.circle : verdict.wrong_high) = true;
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

// Dumps end where the job came to rest: what a rank would have done next is not in them, so that between two members
// that do unlike things in their group nobody can say which is right. Three or more have a majority; a rank that does
// nothing any more shows in every group. One who is a last call ahead while all others ended looks like one who was
// merely first to make a call that they are about to make. And where a rank that left a
// collective out waits in a send or receive, its partner may as well have left out the other half.
bool decidable_by_dumps(const CallLists& lists, const testing::Fault& fault, const RankSet& unfinished,
                        bool waits_in_p2p) {
  if (fault.kind == FaultKind::skip && waits_in_p2p) return false;
  if (fault.kind == FaultKind::extra && unfinished == RankSet{RankId(fault.rank)}) return false;
  if (fault.kind == FaultKind::kill || fault.kind == FaultKind::stuck) return true;
  return lists.members(fault.call.group).size() > 2;
}

// Whether the first call of `rank` that is not over is a send or receive.
bool waits_in_p2p(const Trace& snapshot, RankId rank) {
  const RankRecord& record = snapshot.ranks[static_cast<std::size_t>(rank.value)];
  const Program& program = snapshot.program(record);
  for (std::size_t row = 0; row < program.size(); ++row) {
    const OpState state = program.state(row);
    if (state != OpState::scheduled && state != OpState::started) continue;
    return is_p2p(snapshot.signature(program.signature(row)).kind);
  }
  return false;
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
  const Verdict verdict = verdict_on(findings, culprit, RankSet(culprits));
  const Verdict of_dumps = verdict_on(dumped, culprit, RankSet(culprits));
  if (verdict.circle || of_dumps.circle) ++tally.circles;
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
  if (!decidable_by_dumps(lists, *fault, result.unfinished, waits_in_p2p(result.snapshot, culprit))) return;
  ++tally.in_dumps;
  if (of_dumps.named) ++tally.by_dumps;
  if (!of_dumps.named && std::getenv("DDX_TELL") != nullptr) {
    std::printf("--- seed %llu %s on rank %d at %zu whole %d\n%s%s%s", static_cast<unsigned long long>(seed),
                std::string(testing::name_of(kind)).c_str(), fault->rank, fault->at, verdict.named,
                told(dumped).c_str(), testing::text_of(testing::cut(result, whole)).c_str(),
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
    std::printf("%-12s whole programs %3d of %3d named, dumps %3d of %3d, wrong with high confidence %d, circles %d\n",
                std::string(testing::name_of(kind)).c_str(), tally.named, tally.decidable, tally.by_dumps,
                tally.in_dumps, tally.wrong_high, tally.circles);
    all.decidable += tally.decidable;
    all.named += tally.named;
    all.in_dumps += tally.in_dumps;
    all.by_dumps += tally.by_dumps;
    all.wrong_high += tally.wrong_high;
    all.circles += tally.circles;
  }
  EXPECT_GE(all.decidable, 300) << "too few to say anything";
  EXPECT_GE(all.named * 100, all.decidable * 99);
  EXPECT_GE(all.in_dumps, 300) << "too few to say anything";
  EXPECT_GE(all.by_dumps * 100, all.in_dumps * 99);
  EXPECT_EQ(all.wrong_high, 0);
  // A circle over groups may name all of it, also where one rank's edit would break it, but not with high confidence.
  EXPECT_EQ(all.circles, 0);
}

std::vector<RankSet> blamed(const std::vector<Finding>& findings) {
  std::vector<RankSet> ranks;
  for (const Finding& f : findings) {
    if (f.severity == Severity::error) ranks.push_back(f.ranks);
  }
  return ranks;
}

// Of programs that are too long to be looked at in full, a stretch around the place where they stand is judged.
TEST(LongPrograms, a_part_is_told_as_the_whole) {
  int cut = 0, alike = 0, of_one_code = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    testing::ProgramOptions program;
    program.seed = seed;
    program.world = 3 + static_cast<int>(seed % 6);
    program.steps = 250;
    program.calls_a_step = 3 + static_cast<int>(seed % 4);
    CallLists lists = testing::random_program(program);
    const FaultKind kind = testing::kAllFaults[seed % std::size(testing::kAllFaults)];
    if (!testing::inject(lists, kind, seed)) continue;
    sim::ReplayOptions model;
    model.stream_ordered = seed % 2 == 0;
    const Trace trace = testing::trace_of(lists);
    const auto whole = sim::replay(trace, model);
    model.snapshot_ops = static_cast<std::uint64_t>(program.world) * 600;
    const auto part = sim::replay(trace, model);
    ASSERT_EQ(part.outcome, whole.outcome);
    if (part.outcome == sim::ReplayResult::Outcome::completes || !part.window) continue;
    ++cut;
    const auto by_part = analyzers::analyze(evidence_of(part.snapshot));
    const auto by_whole = analyzers::analyze(evidence_of(whole.snapshot));
    if (blamed(by_part) == blamed(by_whole)) ++alike;
    if (by_part.empty() || by_whole.empty() || by_part.front().code != by_whole.front().code) continue;
    ++of_one_code;
    EXPECT_EQ(by_part.front().confidence, by_whole.front().confidence) << "seed " << seed << '\n' << told(by_part);
  }
  EXPECT_GE(cut, 100) << "too few to say anything";
  // The stretches of this test are short: patterns and odd numbers of calls show less well in them.
  EXPECT_GE(alike * 100, cut * 98) << alike << " of " << cut;
  EXPECT_GE(of_one_code * 100, cut * 90) << of_one_code << " of " << cut;
}

}  // namespace
}  // namespace ddx
