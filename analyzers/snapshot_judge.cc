#include "analyzers/snapshot_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "analyzers/deadlock/stopped.h"
#include "analyzers/deadlock/waits.h"
#include "analyzers/groups/groups.h"
#include "analyzers/log_view.h"
#include "analyzers/match/call_key.h"
#include "analyzers/match/earlier_run.h"
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
    f.explanation +=
        fmt::format("{} groups differ between two equal sides each; {} {} in all of them.\n", undecided_.size(),
                    suspect.label(8), suspect.size() == 1 ? "is the only one" : "are the only ones");
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
  f.summary = fmt::format("the recorded collectives of {} ranks agree: {} call{} in {} group{}", job.seen.size(),
                          format_count(calls), calls == 1 ? "" : "s", groups, groups == 1 ? "" : "s");
  f.explanation =
      "No call is missing, too many, in another order or of another size among what the recorders hold. What they do "
      "not hold (older calls, and sends and receives where the backend records none) is not covered.\n";
  f.advice = "Look at what the log says, and at the stacks of the processes.";
  findings.push_back(std::move(f));
}

std::size_t index_of(const Evidence& evidence, const RankRecord& record) {
  return static_cast<std::size_t>(&record - evidence.trace.ranks.data());
}

// Whether a difference can be why the job does not go on. What is over was survived; a recorder that cannot tell
// success from a time-out is believed only where no log speaks of trouble.
bool holds_up(const Divergence& d, const Evidence& evidence) {
  return d.end == CallsEnd::open || (d.end == CallsEnd::over && trouble_in_logs(evidence));
}

// Calls that are over hold nobody up any more: who did wait then, logs must say.
RankSet held_up_by(const Divergence& d, const RankSet& waiting) {
  RankSet held = d.end == CallsEnd::open ? waiting : RankSet();
  held.insert(d.timed_out);
  return held.without(d.culprits);
}

// Calls without a sequence number (a ring that lost its first ones, where one row numbers all groups) meet nobody here.
std::optional<Finding> left_out_of_matching(const JobView& job) {
  std::vector<RankId> waiting;
  const RankRecord* first = nullptr;
  for (const RankView& view : job.ranks) {
    const Program& program = job.trace->program(*view.record);
    for (std::size_t row = program.size(); row-- > 0;) {
      const OpState state = program.state(row);
      if (!in_flight(state) || program.seq(row) || !is_collective(job.trace->signature(program.signature(row)).kind))
        continue;
      waiting.push_back(view.rank);
      if (!first) first = view.record;
      break;
    }
  }
  if (!first) return std::nullopt;
  const RankSet ranks(std::move(waiting));
  Finding f;
  f.code = "inconclusive";
  f.severity = Severity::info;
  f.confidence = Confidence::high;
  f.victims = ranks;
  f.summary = fmt::format("{} {} inside collectives that have no sequence number: they cannot be matched",
                          ranks.label(8), ranks.size() == 1 ? "is" : "are");
  f.explanation =
      "Only the number of a call tells which calls of other ranks it belongs with. Positions in a buffer do not: each "
      "rank's begins elsewhere.\n";
  f.advice = "Make the recorder's buffer larger (TORCH_FR_BUFFER_SIZE), so that it holds the job from its beginning.";
  return f;
}

// Ranks whose dump is of another time than the others'.
std::optional<Finding> dumps_of_other_times(const JobView& job) {
  if (job.outdated.empty() && job.behind.empty()) return std::nullopt;
  Finding f;
  f.code = "evidence-missing";
  f.severity = Severity::info;
  f.confidence = Confidence::high;
  RankSet all = job.outdated;
  all.insert(job.behind);
  f.subjects.push_back(all.label());
  f.summary = fmt::format("the dump{} of {} {} older than the others: what {} did last is not in {}",
                          all.size() == 1 ? "" : "s", all.label(8), all.size() == 1 ? "is" : "are",
                          all.size() == 1 ? "it" : "they", all.size() == 1 ? "it" : "them");
  if (!job.outdated.empty()) {
    f.explanation += fmt::format(
        "What there is of {} comes from an earlier attempt of the job, and was left out: by its folder, or because its "
        "calls were complete minutes before the others issued the same ones.\n",
        job.outdated.label(8));
  }
  if (!job.behind.empty()) {
    f.explanation += fmt::format(
        "Others have completed calls that {} must have made too, and that {} not in {}: how far {} came is not "
        "known.\n",
        job.behind.label(8), job.behind.size() == 1 ? "is" : "are", job.behind.size() == 1 ? "its dump" : "their dumps",
        job.behind.size() == 1 ? "it" : "they");
  }
  f.advice = "Dump all ranks at one time, and keep the dumps of each attempt in a folder of its own.";
  return f;
}

bool real_dumps(const JobView& job) {
  return std::any_of(job.ranks.begin(), job.ranks.end(),
                     [](const RankView& view) { return view.record->snapshot && !view.record->whole_program; });
}

// Whether anything shows that the job stood still, and was not merely caught between two calls: trouble in a log, or a
// call that was open while other ranks went on for long.
bool stood_still(const JobView& job) {
  if (trouble_in_logs(*job.evidence)) return true;
  constexpr Nanos kLong = 60 * kSecond;
  std::optional<Nanos> oldest, latest;
  for (const RankView& view : job.ranks) {
    const Program& program = job.trace->program(*view.record);
    for (std::size_t row = 0; row < program.size(); ++row) {
      const OpState state = program.state(row);
      const auto issue = program.issue(row);
      if (in_flight(state) && issue) oldest = std::min(oldest.value_or(*issue), *issue);
      for (const auto time : {issue, program.start(row), program.end(row)}) {
        if (time) latest = std::max(latest.value_or(*time), *time);
      }
    }
  }
  return oldest && latest && *latest - *oldest >= kLong;
}

// In dumps of a job that runs somebody always lacks a call that others wait in, and no two dumps are of one moment.
void hedge_if_running(const JobView& job, std::vector<Finding>& findings) {
  if (findings.empty() || !real_dumps(job) || stood_still(job)) return;
  for (Finding& f : findings) {
    if (f.severity != Severity::error || f.ranks.empty()) continue;
    const bool who_is_first = f.code == "stuck-device" || f.code == "rank0-only";
    f.confidence = std::min(f.confidence, who_is_first ? Confidence::low : Confidence::medium);
    f.explanation =
        "Nothing here shows how long they had waited (no log, no time-out): if the job was running when this was "
        "taken, whoever is merely the last to arrive looks just so.\n" +
        f.explanation;
  }
}

// Who never came to a group that only others believe in was never expected there.
void drop_waits_in(const JobView& job, const std::vector<std::uint32_t>& groups, std::vector<Finding>& findings) {
  for (const std::uint32_t index : groups) {
    const std::string subject = "group " + job.groups[index].label;
    std::erase_if(findings, [&](const Finding& f) { return !f.subjects.empty() && f.subjects.front() == subject; });
  }
}

// All are in that call, but they do not agree on it.
void drop_stuck_in(const std::vector<Finding>& unlike, std::vector<Finding>& findings) {
  std::erase_if(findings, [&](const Finding& f) {
    return f.code == "stuck-in-collective" && std::any_of(unlike.begin(), unlike.end(), [&f](const Finding& other) {
             return other.severity == Severity::error &&
                    std::all_of(f.subjects.begin(), f.subjects.end(), [&other](const std::string& subject) {
                      return std::find(other.subjects.begin(), other.subjects.end(), subject) != other.subjects.end();
                    });
           });
  });
}

std::vector<Finding> judge_view(const JobView& job) {
  const Evidence& evidence = *job.evidence;
  const CallKeys keys(job);
  std::vector<Divergence> divergences = find_divergences(job, keys);
  std::vector<CallPlace> broken;
  RankSet broken_by;
  for (const Divergence& d : divergences) {
    if (!holds_up(d, evidence)) continue;
    broken.push_back({d.group, d.seq});
    broken_by.insert(d.culprits);
  }
  std::vector<Finding> bad_peers = find_bad_peers(job);
  for (const Finding& f : bad_peers) broken_by.insert(f.ranks);
  WaitJudgement waits = judge_waits(job, keys, broken, broken_by);
  hedge_if_running(job, waits.findings);

  std::vector<Finding> findings;
  for (GroupDisagreement& disagreement : find_group_disagreements(job)) {
    drop_waits_in(job, disagreement.groups, waits.findings);
    disagreement.finding.victims = waits.waiting.without(disagreement.finding.ranks);
    findings.push_back(std::move(disagreement.finding));
  }
  const bool hangs_elsewhere = std::any_of(waits.findings.begin(), waits.findings.end(),
                                           [](const Finding& f) { return f.severity == Severity::error; });
  for (Divergence& d : divergences) {
    d.finding.victims = held_up_by(d, waits.waiting);
    if (!hangs_elsewhere || holds_up(d, evidence)) continue;
    d.finding.severity = Severity::warning;
    d.finding.explanation += "What the job hangs in is another matter.\n";
  }
  append(findings, DivergenceMerger(std::move(divergences)).run());
  std::vector<Finding> splits = find_split_mismatches(job), pairs = find_bad_pairs(job);
  drop_stuck_in(splits, waits.findings);
  drop_stuck_in(pairs, waits.findings);
  append(findings, std::move(waits.findings));
  append(findings, std::move(splits));
  if (broken.empty()) append(findings, find_impossible_sizes(job));
  append(findings, std::move(pairs));
  for (Finding& f : bad_peers) f.victims = waits.waiting.without(f.ranks);
  append(findings, std::move(bad_peers));
  if (findings.empty()) append(findings, find_stopped(job));
  if (findings.empty()) {
    if (auto finding = left_out_of_matching(job)) {
      findings.push_back(std::move(*finding));
    } else {
      add_no_desync(job, findings);
    }
  }
  append(findings, find_unlike_limits(job));
  if (auto finding = dumps_of_other_times(job)) findings.push_back(std::move(*finding));
  return findings;
}

std::vector<Finding> judge_records(const Evidence& evidence, RecordChoice choice) {
  const JobView job = build_job_view(evidence, choice);
  if (job.ranks.empty()) return {};
  const RankSet earlier = ranks_of_earlier_run(job);
  if (earlier.empty()) return judge_view(job);
  choice.outdated.resize(evidence.trace.ranks.size(), false);
  for (const RankView& view : job.ranks) {
    if (earlier.contains(view.rank)) choice.outdated[index_of(evidence, *view.record)] = true;
  }
  return judge_view(build_job_view(evidence, choice));
}

}  // namespace

std::vector<Finding> judge_snapshot(const Evidence& evidence) {
  std::vector<Finding> findings;
  for (RecordChoice& choice : record_choices(evidence)) append(findings, judge_records(evidence, std::move(choice)));
  return findings;
}

}  // namespace ddx::analyzers
