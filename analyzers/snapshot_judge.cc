#include "analyzers/snapshot_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "analyzers/deadlock/waits.h"
#include "analyzers/groups/groups.h"
#include "analyzers/log_view.h"
#include "analyzers/match/call_key.h"
#include "analyzers/match/job_view.h"
#include "analyzers/mismatch/divergence.h"
#include "analyzers/p2p/p2p.h"

namespace ddx::analyzers {
namespace {

void append(std::vector<Finding>& to, std::vector<Finding>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// A divergence that names a side; one between equal sides names both and waits for other groups to decide.
bool decided(const Divergence& d) { return d.has_majority || d.code == "rank0-only"; }

// Several groups with equal sides: a rank that is in all of them explains all of them.
RankSet common_suspect(const std::vector<Divergence>& undecided) {
  if (undecided.size() < 2) return {};
  RankSet common = undecided.front().culprits;
  for (const Divergence& d : undecided) common = common.common(d.culprits);
  return common.size() < undecided.front().culprits.size() ? common : RankSet();
}

// One fault may show in several groups: what the same ranks do wrong is told once, for the group it is clearest in.
class DivergenceMerger {
 public:
  explicit DivergenceMerger(std::vector<Divergence>&& all) {
    for (Divergence& d : all) (decided(d) ? decided_ : undecided_).push_back(std::move(d));
    std::stable_sort(decided_.begin(), decided_.end(), [](const Divergence& a, const Divergence& b) {
      return a.finding.confidence > b.finding.confidence;
    });
  }

  std::vector<Finding> run() {
    for (Divergence& d : decided_) take(d);
    if (findings_.empty()) {
      if (const RankSet suspect = common_suspect(undecided_); !suspect.empty()) return one_suspect(suspect);
    }
    for (Divergence& d : undecided_) take(d);
    for (std::size_t i = 0; i < findings_.size(); ++i) note_repeats(findings_[i], repeats_[i]);
    return std::move(findings_);
  }

 private:
  void take(Divergence& d) {
    for (std::size_t i = 0; i < findings_.size(); ++i) {
      const bool same = findings_[i].ranks == d.culprits;
      const bool explained = !decided(d) && !findings_[i].ranks.common(d.culprits).empty();
      if (!same && !explained) continue;
      repeats_[i].push_back(d.finding.subjects.front());
      return;
    }
    findings_.push_back(std::move(d.finding));
    repeats_.emplace_back();
  }

  std::vector<Finding> one_suspect(const RankSet& suspect) {
    Finding f = std::move(undecided_.front().finding);
    f.ranks = suspect;
    f.confidence = Confidence::medium;
    f.explanation += fmt::format("{} groups differ between two equal sides each; {} is the only one in all of them.\n",
                                 undecided_.size(), suspect.label(8));
    return {std::move(f)};
  }

  static void note_repeats(Finding& f, const std::vector<std::string>& groups) {
    if (groups.empty()) return;
    std::string names;
    for (std::size_t i = 0; i < groups.size() && i < 6; ++i) names += (i ? ", " : "") + groups[i];
    if (groups.size() > 6) names += fmt::format(" and {} more", groups.size() - 6);
    f.explanation += fmt::format("The same ranks differ in {} too: one cause, told once.\n", names);
  }

  std::vector<Divergence> decided_, undecided_;
  std::vector<Finding> findings_;
  std::vector<std::vector<std::string>> repeats_;
};

// The log says that something is wrong, and the calls of all ranks agree: worth a sentence, since it rules out much.
void add_no_desync(const JobView& job, std::vector<Finding>& findings) {
  std::size_t calls = 0, groups = 0, dumps = 0;
  for (const GroupView& group : job.groups) {
    if (group.with_record() > 1) ++groups;
    for (const MemberView& member : group.members) calls += member.issued;
  }
  for (const RankView& view : job.ranks) dumps += view.record->snapshot ? 1 : 0;
  if (dumps < 2 || calls == 0 || !trouble_in_logs(*job.evidence)) return;
  Finding f;
  f.code = "no-desync";
  f.severity = Severity::info;
  f.confidence = job.seen == job.known ? Confidence::high : Confidence::medium;
  f.summary = fmt::format("the recorded collectives of {} ranks agree: {} calls in {} group{}", job.seen.size(),
                          format_count(calls), groups, groups == 1 ? "" : "s");
  f.explanation =
      "No call is missing, too many, in another order or of another size among what the recorders hold. What they do "
      "not hold (older calls, and sends and receives where the backend records none) is not covered.\n";
  f.advice = "Look at what the log says, and at the stacks of the processes.";
  findings.push_back(std::move(f));
}

// Calls that are over hold nobody up any more: who did wait then, logs must say.
RankSet held_up_by(const Divergence& d, const RankSet& waiting, const Evidence& evidence) {
  switch (d.end) {
    case CallsEnd::open: return waiting.without(d.culprits);
    case CallsEnd::over: return ranks_that_timed_out(evidence).without(d.culprits);
    case CallsEnd::completed: break;
  }
  return {};
}

std::vector<Finding> judge_records(const Evidence& evidence, RecordKind kind) {
  const JobView job = build_job_view(evidence, kind);
  if (job.ranks.empty()) return {};
  const CallKeys keys(job);
  std::vector<Divergence> divergences = find_divergences(job, keys);
  std::vector<CallPlace> broken;
  RankSet broken_by;
  for (const Divergence& d : divergences) {
    broken.push_back({d.group, d.seq});
    broken_by.insert(d.culprits);
  }
  WaitJudgement waits = judge_waits(job, keys, broken, broken_by);

  std::vector<Finding> findings = find_group_disagreements(job);
  for (Finding& f : findings) f.victims = waits.waiting.without(f.ranks);
  for (Divergence& d : divergences) d.finding.victims = held_up_by(d, waits.waiting, evidence);
  append(findings, DivergenceMerger(std::move(divergences)).run());
  append(findings, std::move(waits.findings));
  append(findings, find_split_mismatches(job));
  if (broken.empty()) append(findings, find_impossible_sizes(job));
  append(findings, find_bad_pairs(job));
  append(findings, find_bad_peers(job));
  if (findings.empty()) add_no_desync(job, findings);
  return findings;
}

}  // namespace

std::vector<Finding> judge_snapshot(const Evidence& evidence) {
  std::vector<Finding> findings = judge_records(evidence, RecordKind::dumps);
  append(findings, judge_records(evidence, RecordKind::logs));
  return findings;
}

}  // namespace ddx::analyzers
