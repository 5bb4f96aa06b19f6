// NCCL RAS counts launched operations. A live job's counts differ by right, so one report rarely proves a fault; two
// reports between which nothing moved do.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzers/checker/checker.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

using Report = Seen<RasCommunicator>;

// Who launched how many of one kind of operation.
struct Level {
  std::uint64_t launched = 0;
  std::uint64_t count = 0;  // of ranks
  RankSet ranks;            // as far as listed
  bool listed() const { return ranks.size() == count; }
};
using Levels = std::map<std::string, std::vector<Level>>;  // by operation; levels ascend

// Members and groups may each tell a part: a text report counts all and lists only the fewer.
Levels levels_of(const RasCommunicator& comm) {
  struct Sum {
    std::uint64_t counted = 0;
    std::vector<RankId> listed;  // among the counted
    std::vector<RankId> members;
  };
  std::map<std::string, std::map<std::uint64_t, Sum>> sums;
  for (const auto& member : comm.members) {
    for (const auto& [op, launched] : member.counts) sums[op][launched].members.push_back(member.rank);
  }
  for (const auto& group : comm.groups) {
    Sum& sum = sums[group.op][group.launched];
    sum.counted += group.rank_count;
    sum.listed.insert(sum.listed.end(), group.ranks.begin(), group.ranks.end());
  }
  Levels levels;
  for (auto& [op, counts] : sums) {
    for (auto& [launched, sum] : counts) {
      Level level;
      level.launched = launched;
      level.ranks = RankSet(std::move(sum.members));
      level.ranks.insert(RankSet(std::move(sum.listed)));
      level.count = std::max<std::uint64_t>(sum.counted, level.ranks.size());
      levels[op].push_back(std::move(level));
    }
  }
  return levels;
}

// What identifies a communicator over reports, and whether its positions are ranks of the job.
struct Comm {
  std::string label;
  std::vector<Report> reports;  // in order of input and line: earlier first
  bool positions_are_ranks = false;
  const RasCommunicator& last() const { return *reports.back().fact; }
};

std::vector<Comm> comms_of(const Evidence& evidence) {
  std::map<std::string, Comm> found;
  std::uint64_t largest = stated_world_size(evidence).value_or(0);
  for (const auto& report : seen<RasCommunicator>(evidence)) {
    Comm& comm = found[report.fact->id.empty() ? fmt::format("line {}", report.event->line) : report.fact->id];
    comm.label = report.fact->id;
    comm.reports.push_back(report);
    largest = std::max(largest, report.fact->size);
  }
  std::size_t at_largest = 0;
  for (const auto& [id, comm] : found) {
    if (comm.last().size == largest) ++at_largest;
  }
  std::vector<Comm> comms;
  for (auto& [id, comm] : found) {
    // Times of day wrap, so they have an order only beside a first one; without times the order of files stays.
    const LogEvent& first = *comm.reports.front().event;
    std::stable_sort(comm.reports.begin(), comm.reports.end(), [&first](const Report& a, const Report& b) {
      return elapsed(first, *a.event).value_or(0) < elapsed(first, *b.event).value_or(0);
    });
    // Several communicators of the largest size may be parts of one job: then positions say nothing.
    comm.positions_are_ranks = comm.last().size == largest && at_largest == 1;
    comms.push_back(std::move(comm));
  }
  return comms;
}

Finding start(const Evidence& evidence, const Comm& comm, const char* code, Severity severity, Confidence confidence) {
  Finding finding;
  finding.code = code;
  finding.severity = severity;
  finding.confidence = confidence;
  if (!comm.label.empty()) finding.subjects.push_back("communicator " + comm.label);
  for (const Report& report : comm.reports) cite(finding, evidence, *report.event);
  return finding;
}

// Names `positions` as culprits where they are ranks of the job, else as subjects.
std::string name(const Comm& comm, const RankSet& positions, Finding& finding) {
  if (comm.positions_are_ranks) {
    finding.ranks = positions;
    return positions.label(6);
  }
  std::string text = fmt::format("position{} {}", positions.size() == 1 ? "" : "s", positions.text(6));
  finding.subjects.push_back(text);
  return text;
}

void add_places(const RasCommunicator& comm, const RankSet& positions, Finding& finding) {
  for (const auto& member : comm.members) {
    if (!positions.contains(member.rank) || member.host.empty() || finding.subjects.size() > 12) continue;
    finding.subjects.push_back(
        fmt::format("host {}{}", member.host, member.pid ? fmt::format(" pid {}", *member.pid) : ""));
  }
}

RankSet others(const RasCommunicator& comm, const RankSet& positions) {
  if (comm.size == 0 || comm.size > 1'000'000) return {};
  return RankSet::range(RankId(0), RankId(static_cast<std::int64_t>(comm.size) - 1)).without(positions);
}

// ---- members that do not answer -------------------------------------------------------------------------------------

RankSet members_where(const RasCommunicator& comm, bool RasCommunicator::Member::*flag) {
  std::vector<RankId> ranks;
  for (const auto& member : comm.members) {
    if (member.*flag) ranks.push_back(member.rank);
  }
  return RankSet(std::move(ranks));
}

std::optional<Finding> absent_members(const Evidence& evidence, const Comm& comm) {
  const RasCommunicator& last = comm.last();
  const RankSet dead = members_where(last, &RasCommunicator::Member::considered_dead);
  const RankSet mute = members_where(last, &RasCommunicator::Member::unresponsive).without(dead);
  const bool starting = contains_text(last.status, "init");
  RankSet missing = members_where(last, &RasCommunicator::Member::missing).without(dead);
  // Who has not come to the start need not be dead.
  if (!starting) missing = missing.without(mute);
  if (!dead.empty() || (!mute.empty() && !starting)) {
    const RankSet& gone = dead.empty() ? mute : dead;
    Finding finding =
        start(evidence, comm, "dead-rank", Severity::error, dead.empty() ? Confidence::medium : Confidence::high);
    const std::string who = name(comm, gone, finding);
    add_places(last, gone, finding);
    if (comm.positions_are_ranks) finding.victims = others(last, gone);
    finding.summary = dead.empty() ? fmt::format("NCCL's RAS gets no answer from {}", who)
                                   : fmt::format("NCCL's RAS considers {} dead", who);
    finding.explanation = fmt::format("{} ended, or {} cannot be reached: RAS threads of the other processes tried.\n",
                                      gone.size() == 1 ? "Its process" : "Their processes",
                                      gone.size() == 1 ? "its host" : "their hosts");
    if (!dead.empty() && !mute.empty())
      finding.explanation += fmt::format("{} {} not answer either.\n", mute.label(), mute.size() == 1 ? "does" : "do");
    finding.advice = gone.size() == 1 ? "Look whether that process exists, at its log's end, and at its host."
                                      : "Look whether those processes exist, at their logs' ends, and at their hosts.";
    return finding;
  }
  if (missing.empty()) return std::nullopt;
  Finding finding =
      start(evidence, comm, starting ? "init-hang" : "lagging-rank", starting ? Severity::error : Severity::warning,
            starting ? Confidence::medium : Confidence::low);
  const std::string who = name(comm, missing, finding);
  add_places(last, missing, finding);
  finding.summary = starting ? fmt::format("A communicator is still starting, and {} {} not come", who,
                                           missing.size() == 1 ? "has" : "have")
                             : fmt::format("NCCL's RAS has no data of {}", who);
  finding.explanation = starting ? "The members that came wait for the others.\n"
                                 : fmt::format(
                                       "RAS does not say that {0} dead: {1} may have left the communicator, or answer "
                                       "late.\n",
                                       missing.size() == 1 ? "it is" : "they are", missing.size() == 1 ? "it" : "they");
  finding.advice = fmt::format("Ask RAS again with a longer time-out, and look whether {}.",
                               missing.size() == 1 ? "that process exists" : "those processes exist");
  return finding;
}

// ---- counts ---------------------------------------------------------------------------------------------------------

std::string ranks_text(std::uint64_t count) { return fmt::format("{} rank{}", count, count == 1 ? "" : "s"); }

std::string levels_text(const std::vector<Level>& levels) {
  std::vector<std::string> parts;
  for (const Level& level : levels)
    parts.push_back(fmt::format("{} up to {}", ranks_text(level.count), level.launched));
  return join_words(parts, 4);
}

struct Unequal {
  std::string op;
  std::vector<Level> levels;
  std::uint64_t behind_count() const { return levels.front().count; }
  std::uint64_t gap() const { return levels.back().launched - levels.front().launched; }
};

// The operation whose counts are furthest apart.
std::optional<Unequal> unequal_in(const Levels& levels) {
  std::optional<Unequal> worst;
  for (const auto& [op, own] : levels) {
    if (own.size() < 2) continue;
    Unequal unequal{op, own};
    if (!worst || unequal.gap() > worst->gap()) worst = std::move(unequal);
  }
  return worst;
}

enum class Movement { one_report, moved, still };

bool same_levels(const Levels& a, const Levels& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first &&
           std::equal(x.second.begin(), x.second.end(), y.second.begin(), y.second.end(),
                      [](const Level& l, const Level& m) { return l.launched == m.launched && l.count == m.count; });
  });
}

// The same report twice (a copy of it, or one that tee wrote) is one: only a known time between two makes them two.
bool later_than_the_one_before(const Comm& comm) {
  if (comm.reports.size() < 2) return false;
  const auto between = elapsed(*comm.reports[comm.reports.size() - 2].event, *comm.reports.back().event);
  return between && *between > 0;
}

Movement movement_of(const Comm& comm) {
  if (comm.reports.size() < 2) return Movement::one_report;
  const Levels last = levels_of(comm.last());
  const Levels earlier = levels_of(*comm.reports[comm.reports.size() - 2].fact);
  if (last.empty() && earlier.empty()) return Movement::one_report;
  if (!same_levels(earlier, last)) return Movement::moved;
  return later_than_the_one_before(comm) ? Movement::still : Movement::one_report;
}

// Two reports, unequal counts, nothing moved: those with the lower count hold the others.
Finding held_up(const Evidence& evidence, const Comm& comm, const Unequal& unequal) {
  const Level& low = unequal.levels.front();
  Finding finding = start(evidence, comm, "missing-ranks", Severity::error, Confidence::medium);
  std::string who = ranks_text(low.count);
  if (low.listed()) {
    who = name(comm, low.ranks, finding);
    if (comm.positions_are_ranks) finding.victims = others(comm.last(), low.ranks);
  } else {
    // Where only the others are listed, those behind are the rest.
    RankSet ahead;
    std::uint64_t ahead_count = 0;
    for (std::size_t i = 1; i < unequal.levels.size(); ++i) {
      ahead.insert(unequal.levels[i].ranks);
      ahead_count += unequal.levels[i].count;
    }
    const RankSet rest = others(comm.last(), ahead);
    if (ahead.size() == ahead_count && rest.size() == low.count && low.count <= ahead_count) {
      who = name(comm, rest, finding);
      if (comm.positions_are_ranks) finding.victims = ahead;
    }
  }
  finding.subjects.push_back(fmt::format("{} {}", unequal.op, low.launched + 1));
  finding.summary = fmt::format("{} {} not launched {} number {}, and nothing moved between two reports", who,
                                low.count == 1 ? "has" : "have", unequal.op, low.launched + 1);
  finding.explanation =
      fmt::format("{}. A live job's counts move; these stand still, so those ahead wait for those behind.\n",
                  levels_text(unequal.levels));
  finding.advice = "Take a stack of the processes that are behind: what holds them is the question.";
  return finding;
}

Finding undecided(const Evidence& evidence, const Comm& comm, const Unequal& unequal) {
  Finding finding = start(evidence, comm, "inconclusive", Severity::info, Confidence::medium);
  const Level& low = unequal.levels.front();
  const Level& high = unequal.levels.back();
  const bool few_ahead = high.count < low.count;
  finding.subjects.push_back(fmt::format("{} {}", unequal.op, high.launched));
  finding.summary = fmt::format("{} counts differ by {} ({}): one report does not tell a hang from a job at work",
                                unequal.op, unequal.gap(), levels_text(unequal.levels));
  if (few_ahead) {
    const std::string listed = high.ranks.empty() ? ranks_text(high.count) : high.ranks.label(6);
    finding.explanation = fmt::format(
        "{} {} ahead, not at fault: RAS lists the smaller set, and here that set leads. A small lead with all others "
        "level is "
        "what a healthy snapshot may look like.\n",
        listed, high.count == 1 ? "is" : "are");
    finding.explanation.front() =
        static_cast<char>(finding.explanation.front() == 'r' ? 'R' : finding.explanation.front());
  } else {
    finding.explanation = "Ranks launch at their own pace: a small lag is what a healthy snapshot may look like.\n";
  }
  finding.explanation += fmt::format(
      "If the counts do not move, the {} with the lower count {} not launched number {}, and the question is what "
      "holds {}.\n",
      low.count, low.count == 1 ? "has" : "have", low.launched + 1, low.count == 1 ? "it" : "them");
  finding.advice = "Take a second report some seconds later (ncclras -v), and give both.";
  return finding;
}

Finding behind(const Evidence& evidence, const Comm& comm, const Unequal& unequal) {
  const Level& low = unequal.levels.front();
  Finding finding = start(evidence, comm, "lagging-rank", Severity::warning, Confidence::low);
  std::string who = ranks_text(low.count);
  if (low.listed()) {
    who = name(comm, low.ranks, finding);
    add_places(comm.last(), low.ranks, finding);
    if (comm.positions_are_ranks) finding.victims = others(comm.last(), low.ranks);
  }
  finding.summary = fmt::format("{} {} {} operation{} behind in {} ({})", who, low.count == 1 ? "is" : "are",
                                unequal.gap(), unequal.gap() == 1 ? "" : "s", unequal.op, levels_text(unequal.levels));
  finding.explanation =
      "Fast ranks may launch ahead, so a gap alone is no proof; but few ranks that lag by more than one while all "
      "others are level are where to look first.\n";
  finding.advice = "Take a second report: if these counts stand still, take a stack of those processes.";
  return finding;
}

Finding level_and_still(const Evidence& evidence, const Comm& comm) {
  Finding finding = start(evidence, comm, "inconclusive", Severity::info, Confidence::low);
  finding.summary = "All ranks have launched the same operations, and no count moved between the reports";
  finding.explanation =
      "Either the last operation is entered by all and does not end, or all ranks are busy (or stuck) outside of "
      "NCCL. RAS counts launches only.\n";
  finding.advice = "Recorder dumps decide: they show whether the last operation completed.";
  return finding;
}

std::uint64_t total_of(const Unequal& unequal) {
  std::uint64_t total = 0;
  for (const Level& level : unequal.levels) total += level.count;
  return total;
}

std::optional<Finding> judge_counts(const Evidence& evidence, const Comm& comm) {
  const Movement movement = movement_of(comm);
  const auto unequal = unequal_in(levels_of(comm.last()));
  // It goes on; but a few may stand where they stood while the others leave them behind.
  if (movement == Movement::moved) {
    if (!unequal || unequal->gap() < 2 || unequal->behind_count() * 4 > total_of(*unequal)) return std::nullopt;
    const Levels earlier = levels_of(*comm.reports[comm.reports.size() - 2].fact);
    const auto before_it = earlier.find(unequal->op);
    const bool stands = before_it != earlier.end() && !before_it->second.empty() &&
                        before_it->second.front().launched == unequal->levels.front().launched;
    return stands ? std::optional(behind(evidence, comm, *unequal)) : std::nullopt;
  }
  if (!unequal) {
    if (movement == Movement::still) return level_and_still(evidence, comm);
    return std::nullopt;
  }
  if (movement == Movement::still) return held_up(evidence, comm, *unequal);
  const bool few_behind = unequal->behind_count() * 4 <= total_of(*unequal) && unequal->levels.size() == 2;
  if (few_behind && unequal->gap() >= 2) return behind(evidence, comm, *unequal);
  return undecided(evidence, comm, *unequal);
}

std::optional<Finding> member_errors(const Evidence& evidence, const Comm& comm) {
  std::vector<RankId> ranks;
  std::string text;
  for (const auto& member : comm.last().members) {
    if (member.error.empty()) continue;
    ranks.push_back(member.rank);
    if (text.empty()) text = member.error;
  }
  if (ranks.empty()) return std::nullopt;
  Finding finding = start(evidence, comm, "inconclusive", Severity::info, Confidence::low);
  const RankSet set(std::move(ranks));
  add_places(comm.last(), set, finding);
  finding.summary =
      fmt::format("NCCL reports an error on {} of {} members ({}); the report does not say where it began", set.size(),
                  comm.last().size, text);
  finding.explanation = fmt::format("Members {}.\n", set.text());
  finding.advice = "The logs of those processes (NCCL_DEBUG=WARN) have the innermost error.";
  return finding;
}

// "1 job process is considered dead": the process alone, of no communicator's section.
std::optional<Finding> dead_processes(const Evidence& evidence) {
  const ProcessTable processes(evidence);
  Finding finding;
  std::vector<std::string> names;
  for (const auto& [event, fact] : seen<RasCommunicator>(evidence)) {
    if (fact->errors != "DEAD" || !fact->members.empty() || !event->pid) continue;
    auto rank = processes.rank_of(event->host, *event->pid);
    if (!rank) rank = processes.rank_of(*event->pid);
    if (rank) finding.ranks.insert(*rank);
    const std::string name = fmt::format("pid {} on {}", *event->pid, event->host);
    if (finding.subjects.size() < 16)
      finding.subjects.push_back(fmt::format("host {} pid {}", event->host, *event->pid));
    names.push_back(rank ? fmt::format("rank {} ({})", rank->value, name) : name);
    cite(finding, evidence, *event);
  }
  if (names.empty()) return std::nullopt;
  finding.code = "dead-rank";
  finding.confidence = finding.ranks.empty() ? Confidence::medium : Confidence::high;
  finding.summary = fmt::format("NCCL's RAS considers {} dead", join_words(names, 4));
  finding.explanation = "Its process ended, or its host cannot be reached: RAS threads of the other processes tried.\n";
  finding.advice = "Look whether that process exists, at its log's end, and at its host.";
  return finding;
}

}  // namespace

std::vector<Finding> judge_ras(const Evidence& evidence) {
  std::vector<Finding> findings;
  if (auto finding = dead_processes(evidence)) findings.push_back(std::move(*finding));
  for (const Comm& comm : comms_of(evidence)) {
    auto finding = absent_members(evidence, comm);
    if (!finding) finding = judge_counts(evidence, comm);
    if (!finding) finding = member_errors(evidence, comm);
    if (finding) findings.push_back(std::move(*finding));
  }
  // One dead process stands in every communicator that it was in: the first one told is enough.
  const bool dead =
      std::any_of(findings.begin(), findings.end(), [](const Finding& f) { return f.code == "dead-rank"; });
  if (dead) {
    std::erase_if(findings, [](const Finding& finding) { return finding.code != "dead-rank"; });
    std::stable_sort(findings.begin(), findings.end(),
                     [](const Finding& a, const Finding& b) { return a.ranks.size() > b.ranks.size(); });
    findings.resize(1);
  }
  // Many communicators in the same state are told once for each code.
  std::set<std::string> told;
  std::erase_if(findings,
                [&told](const Finding& finding) { return finding.ranks.empty() && !told.insert(finding.code).second; });
  return findings;
}

}  // namespace ddx::analyzers
