// Whose end came first. Ends that only report another's (a closed connection, the launcher's SIGTERM, the watchdog's
// abort) are consequences; of the rest the earliest is the cause, together with those that ended alike at that moment.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analyzers/liveness/ends.h"
#include "analyzers/liveness/exit_meaning.h"
#include "analyzers/liveness/liveness.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

constexpr Nanos kSameMoment = 5 * kSecond;  // ends of one kind this close together have one cause
constexpr std::size_t kMostEnds = 4;        // spelled out in one explanation

struct Cause {
  std::vector<End> ends;
  bool ordered = true;  // by time, by line, or by the launcher: it is known to be the first
};

Cause pick_cause(std::vector<End> primary) {
  const bool strong = std::any_of(primary.begin(), primary.end(), [](const End& end) { return !end.weak; });
  if (strong) std::erase_if(primary, [](const End& end) { return end.weak; });
  // A line without a rank is most likely of a rank that another line names for the same kind of end.
  std::set<std::string> named_kinds;
  for (const End& end : primary) {
    if (end.rank) named_kinds.insert(end.kind);
  }
  std::erase_if(primary, [&named_kinds](const End& end) { return !end.rank && named_kinds.count(end.kind) > 0; });
  Cause cause;
  if (primary.size() < 2) return {std::move(primary), true};
  const End* first = &primary.front();
  for (const End& end : primary) {
    const auto earlier = before(*end.event, *first->event);
    if (earlier.value_or(false)) first = &end;
  }
  cause.ordered = std::all_of(primary.begin(), primary.end(), [first](const End& end) {
    return &end == first || before(*first->event, *end.event).value_or(false);
  });
  if (!cause.ordered) {
    const auto named = std::find_if(primary.begin(), primary.end(), [](const End& e) { return e.first_by_launcher; });
    if (named == primary.end()) return {std::move(primary), false};
    first = &*named;
    cause.ordered = true;
  }
  for (const End& end : primary) {
    const auto between = elapsed(*first->event, *end.event);
    const bool same_moment = !between || (*between <= kSameMoment && *between >= -kSameMoment);
    if (&end == first || (end.kind == first->kind && same_moment)) cause.ends.push_back(end);
  }
  return cause;
}

// The rank that a nameless end must be of: the launcher's, else the only one that left no dump where others did.
std::optional<RankId> infer_rank(const Evidence& evidence, const std::vector<End>& all) {
  std::vector<RankId> launcher_ranks;
  for (const End& end : all) {
    if (end.first_by_launcher && end.rank) launcher_ranks.push_back(*end.rank);
  }
  const RankSet named(std::move(launcher_ranks));
  if (named.size() == 1) return *named.begin();
  std::vector<RankId> dumped;
  for (const RankRecord& record : evidence.trace.ranks) {
    if (record.snapshot && record.rank) dumped.push_back(*record.rank);
  }
  if (dumped.empty() || !stated_world_size(evidence)) return std::nullopt;
  const RankSet absent = known_ranks(evidence).without(RankSet(std::move(dumped)));
  return absent.size() == 1 ? std::optional(*absent.begin()) : std::nullopt;
}

std::string name_of(const Evidence& evidence, const End& end) {
  if (end.rank) return fmt::format("rank {}", end.rank->value);
  if (!end.event->host.empty()) return speaker(evidence, *end.event);
  return fmt::format("a process whose rank is not known ({})", file_name(evidence, *end.event));
}

// "Rank 9 lost its connection to 192.0.2.21, where rank 3 ran, 431 ms later."
void explain_connections(const Evidence& evidence, const End& cause, Finding& finding) {
  if (!cause.rank) return;
  std::set<std::string> places;
  for (const auto& [event, fact] : seen<RankAddress>(evidence)) {
    if (fact->rank != *cause.rank) continue;
    if (!fact->address.empty()) places.insert(fact->address);
    if (!fact->host.empty()) places.insert(fact->host);
  }
  std::size_t told = 0;
  for (const auto& [event, fact] : seen<NetSocketError>(evidence)) {
    if (places.count(fact->peer) == 0) continue;
    cite(finding, evidence, *event);
    if (event->rank && *event->rank != *cause.rank) finding.victims.insert(*event->rank);
    if (++told > kMostEnds) continue;
    const auto later = elapsed(*cause.event, *event);
    finding.explanation += fmt::format(
        "{} lost its connection to {}, where rank {} ran{}: a consequence.\n", speaker(evidence, *event), fact->peer,
        cause.rank->value, later && *later >= 0 ? fmt::format(", {} later", format_duration(*later)) : std::string());
  }
}

// NCCL hands an error up through its layers and may change it on the way: the innermost says what happened.
void explain_codes(const Evidence& evidence, Finding& finding) {
  std::map<std::pair<InputId, std::int64_t>, std::vector<Seen<ReturnCode>>> by_process;
  for (const auto& code : seen<ReturnCode>(evidence)) {
    by_process[{code.event->input, code.event->pid.value_or(0)}].push_back(code);
  }
  std::size_t told = 0;
  for (const auto& [process, codes] : by_process) {
    const auto& inner = codes.front();
    const auto& outer = codes.back();
    if (++told > kMostEnds) break;
    cite(finding, evidence, *inner.event);
    finding.explanation += fmt::format("{}: NCCL's innermost error is {} ({})", speaker(evidence, *inner.event),
                                       inner.fact->code, nccl_code_text(inner.fact->code));
    if (outer.fact->code != inner.fact->code) {
      finding.explanation += fmt::format("; the {} further up is the same error under another name", outer.fact->code);
    }
    finding.explanation += ".\n";
  }
}

void explain_dumps(const Evidence& evidence, Finding& finding) {
  std::vector<RankId> dumped;
  for (const RankRecord& record : evidence.trace.ranks) {
    if (record.snapshot && record.rank) dumped.push_back(*record.rank);
  }
  const RankSet with_dump(std::move(dumped));
  if (with_dump.empty()) return;
  const RankSet without = finding.ranks.without(with_dump);
  if (without.empty()) return;
  finding.explanation += fmt::format(
      "Of the {} ranks known, {} left a recorder dump; {} left none: the {} ended "
      "otherwise than by the time-out that made the others write theirs.\n",
      known_ranks(evidence).size(), with_dump.size(), without.label(), without.size() == 1 ? "process" : "processes");
  finding.victims.insert(with_dump.without(finding.ranks));
}

std::string advice_for(const End& cause) {
  if (contains_text(cause.what, "out of memory")) {
    return "Give the process more memory or make it need less (batch size, loader workers, activation checkpointing); "
           "the other ranks need nothing.";
  }
  if (cause.exception) return "Repair the exception on that rank; the other ranks' errors go with it.";
  if (cause.signal == 9) {
    return "Look in the kernel's log (dmesg) and the scheduler's for the out-of-memory killer or a time limit.";
  }
  if (cause.signal == 7) return "A bus error is most often a full /dev/shm: look at its size and at what lies in it.";
  if (cause.signal) {
    return "Get a core dump or a stack of that rank (PYTHONFAULTHANDLER=1); the other ranks' errors go with it.";
  }
  return "Look at the end of that process's own output: it exited before the others.";
}

void summarise(const Evidence& evidence, const Cause& cause, Finding& finding) {
  const End& first = cause.ends.front();
  const bool alike =
      std::all_of(cause.ends.begin(), cause.ends.end(), [&first](const End& end) { return end.kind == first.kind; });
  std::string who = name_of(evidence, first);
  if (cause.ends.size() > 1 && finding.ranks.size() > 1) who = finding.ranks.label();
  if (who.front() >= 'a') who.front() = static_cast<char>(who.front() - 'a' + 'A');
  if (alike) {
    const bool several = cause.ends.size() > 1 && finding.ranks.size() > 1 && first.what.starts_with("was ");
    finding.summary = fmt::format("{} {}", who, several ? "were" + first.what.substr(3) : first.what);
  } else {
    finding.summary = fmt::format("{} ended by errors of their own; which came first is not known", who);
  }
  if (!finding.victims.empty()) {
    finding.summary +=
        fmt::format("; {} only {} on {}", finding.victims.label(4), finding.victims.size() == 1 ? "waits" : "wait",
                    finding.ranks.size() > 1 ? "them" : "it");
  }
}

void explain_ends(const Evidence& evidence, const Cause& cause, const std::vector<End>& consequences,
                  Finding& finding) {
  for (std::size_t i = 0; i < cause.ends.size(); ++i) {
    cite(finding, evidence, *cause.ends[i].event);
    if (i >= kMostEnds) continue;
    finding.explanation += fmt::format("{}: {}.\n", name_of(evidence, cause.ends[i]), cause.ends[i].what);
  }
  std::vector<RankId> later;
  for (const End& end : consequences) {
    if (end.rank && !finding.ranks.contains(*end.rank)) later.push_back(*end.rank);
  }
  const RankSet ranks(std::move(later));
  if (ranks.empty()) return;
  finding.explanation +=
      fmt::format("The {} {}: later, asked for by the launcher, or only a report that a peer was gone.\n",
                  ranks.size() == 1 ? "end of " + ranks.label() + " is" : "ends of " + ranks.label() + " are",
                  ranks.size() == 1 ? "a consequence" : "consequences");
  for (const End& end : consequences) {
    if (end.rank && ranks.contains(*end.rank)) cite(finding, evidence, *end.event);
  }
}

Confidence confidence_of(const Cause& cause, const Finding& finding, bool inferred, const Evidence& evidence) {
  if (std::any_of(cause.ends.begin(), cause.ends.end(),
                  [](const End& end) { return end.perhaps_caught || end.left_hang; }))
    return Confidence::low;
  if (!cause.ordered) return cause.ends.size() > 1 ? Confidence::low : Confidence::medium;
  if (finding.ranks.empty()) return Confidence::medium;
  const RankSet all = known_ranks(evidence);
  if (finding.ranks.size() > 1 && finding.ranks.size() == all.size()) return Confidence::medium;
  const bool weak = std::any_of(cause.ends.begin(), cause.ends.end(), [](const End& end) { return end.weak; });
  return weak || inferred ? Confidence::medium : Confidence::high;
}

Finding dead_rank(const Evidence& evidence, const std::vector<End>& all, Cause cause,
                  const std::vector<End>& consequences) {
  Finding finding;
  finding.code = "dead-rank";
  bool inferred = false;
  if (cause.ends.size() == 1 && !cause.ends.front().rank) {
    cause.ends.front().rank = infer_rank(evidence, all);
    inferred = cause.ends.front().rank.has_value();
  }
  std::vector<RankId> ranks;
  for (const End& end : cause.ends) {
    if (end.rank) {
      ranks.push_back(*end.rank);
    } else {
      finding.subjects.push_back(fmt::format("line {}:{}", file_name(evidence, *end.event), end.event->line));
    }
    if (!end.event->host.empty()) finding.subjects.push_back("host " + end.event->host);
  }
  finding.ranks = RankSet(std::move(ranks));
  if (!finding.ranks.empty()) finding.victims = known_ranks(evidence).without(finding.ranks);
  std::sort(finding.subjects.begin(), finding.subjects.end());
  finding.subjects.erase(std::unique(finding.subjects.begin(), finding.subjects.end()), finding.subjects.end());
  if (finding.subjects.size() > 8) finding.subjects.resize(8);

  explain_ends(evidence, cause, consequences, finding);
  if (inferred) {
    finding.explanation +=
        "Its lines bear no rank: the rank follows from the launcher's table or from the dumps, "
        "where it alone is absent.\n";
  }
  if (cause.ends.size() > 1 && finding.ranks.size() == known_ranks(evidence).size()) {
    finding.explanation +=
        "Every rank ended in the same way: look for one common cause (input, code, shared storage), "
        "not for one rank.\n";
  }
  if (std::any_of(cause.ends.begin(), cause.ends.end(), [](const End& end) { return end.perhaps_caught; })) {
    finding.explanation +=
        "Its log reports work after that: either the exception was caught and something else is wrong, or these lines "
        "were only written late.\n";
  }
  if (std::any_of(cause.ends.begin(), cause.ends.end(), [](const End& end) { return end.left_hang; })) {
    finding.may_be_consequence = true;
    finding.explanation +=
        "It had left a dump before, in which calls are waited in: it may have given up on a hang, and not be its "
        "cause.\n";
  }
  explain_dumps(evidence, finding);
  explain_connections(evidence, cause.ends.front(), finding);
  explain_codes(evidence, finding);
  finding.confidence = confidence_of(cause, finding, inferred, evidence);
  finding.advice = advice_for(cause.ends.front());
  summarise(evidence, cause, finding);
  return finding;
}

// Several ranks left with an exit code of their own and none says why: who was seen first is chance.
std::optional<Finding> unexplained_exits(const Evidence& evidence, const Cause& cause, const std::vector<End>& all) {
  const bool weak = std::all_of(cause.ends.begin(), cause.ends.end(), [](const End& end) { return end.weak; });
  std::vector<RankId> ranks;
  for (const End& end : all) {
    if (end.weak && end.rank) ranks.push_back(*end.rank);
  }
  const RankSet exited(std::move(ranks));
  const bool waits =
      std::any_of(all.begin(), all.end(), [](const End& end) { return contains_text(end.what, "timed out waiting"); });
  if (!weak || waits || exited.size() < 2) return std::nullopt;
  Finding finding;
  finding.code = "inconclusive";
  finding.severity = Severity::info;
  finding.confidence = Confidence::low;
  finding.victims = exited;
  const End& first = cause.ends.front();
  finding.summary = fmt::format("{} ended with exit codes of their own and no error that is shown; {} was seen first",
                                exited.label(4), name_of(evidence, first));
  finding.explanation =
      "Either each gave up on a hang (a time-out of its own), or one failed and the others followed. Who is seen "
      "first among them is chance.\n";
  finding.advice = "Look at the end of each rank's own output, and at what the ranks were calling (recorder dumps).";
  for (const End& end : all) {
    if (end.weak) cite(finding, evidence, *end.event);
  }
  return finding;
}

// gloo aborts the rank that receives more than it expects: the mismatch is its neighbour's or its own.
std::optional<Finding> another_size(const Evidence& evidence, const std::vector<End>& ends) {
  std::vector<RankId> receivers;
  Finding finding;
  for (const End& end : ends) {
    if (!received_another_size(end.what)) continue;
    if (end.rank) receivers.push_back(*end.rank);
    cite(finding, evidence, *end.event);
  }
  // Dumps name the call itself.
  const bool dumps = std::any_of(evidence.trace.ranks.begin(), evidence.trace.ranks.end(),
                                 [](const RankRecord& record) { return record.snapshot; });
  if (finding.evidence.empty() || dumps) return std::nullopt;
  finding.code = "mismatch-size";
  finding.confidence = Confidence::low;
  finding.victims = RankSet(std::move(receivers));
  finding.summary = fmt::format("{} received data of another size than {}, and gave up; who is wrong is not shown",
                                finding.victims.empty() ? std::string("A rank") : finding.victims.label(4),
                                finding.victims.size() > 1 ? "they expect" : "it expects");
  finding.explanation =
      "A collective does not match between two neighbours: another count, another datatype, or another operation "
      "altogether. The receiver is only the one who noticed; the others' closed connections follow.\n";
  finding.advice =
      "Recorder dumps (TORCH_FR_BUFFER_SIZE) or TORCH_DISTRIBUTED_DEBUG=DETAIL show which rank calls what.";
  return finding;
}

// Attempts that came to work at all: what ended an earlier one is over.
std::set<std::uint32_t> attempts_with_work(const Evidence& evidence, const std::vector<std::uint32_t>& attempts) {
  std::set<std::uint32_t> work;
  for (std::size_t i = 0; i < evidence.events.size(); ++i) {
    const LogFact& fact = evidence.events[i].fact;
    if (std::holds_alternative<ProgressNotice>(fact) || std::holds_alternative<WatchdogTimeout>(fact)) {
      work.insert(attempts[i]);
    }
  }
  return work;
}

bool asked_to_stop(const End& end) { return end.signal == 15 || end.signal == 2; }

// Ranks below the highest known one that nothing in the evidence is of.
RankSet without_evidence(const Evidence& evidence) {
  constexpr std::size_t kMostListed = 65'536;  // a corrupt rank must not cost gigabytes
  const RankSet known = known_ranks(evidence);
  if (known.empty()) return {};
  const RankId last = known.values().back();
  if (last.value < 0 || static_cast<std::size_t>(last.value) >= kMostListed) return {};
  std::vector<RankId> heard;
  for (const LogEvent& event : evidence.events) {
    if (event.rank) heard.push_back(*event.rank);
    if (const auto* failure = std::get_if<ElasticFailure>(&event.fact); failure && failure->rank) {
      heard.push_back(*failure->rank);
    }
  }
  for (const RankRecord& record : evidence.trace.ranks) {
    if (record.rank) heard.push_back(*record.rank);
  }
  return RankSet::range(RankId(0), last).without(RankSet(std::move(heard)));
}

// All that is known are reports that some peer went away.
std::optional<Finding> only_reports(const Evidence& evidence, const std::vector<End>& ends, bool any_timeout) {
  std::vector<RankId> reporters, stopped;
  for (const End& end : ends) {
    if (contains_text(end.what, "timed out waiting")) return std::nullopt;  // a wait: they left each other
    if (end.exception && end.rank && speaks_of_a_peer(end.what)) reporters.push_back(*end.rank);
    if (end.rank && asked_to_stop(end)) stopped.push_back(*end.rank);
  }
  const RankSet told(std::move(reporters));
  const RankSet absent = without_evidence(evidence);
  RankSet silent = known_ranks(evidence).without(told).without(RankSet(std::move(stopped)));
  silent.insert(absent);
  if (told.empty() || silent.empty() || any_timeout) return std::nullopt;
  std::string one_of = silent.size() == 1 ? silent.label() : "one of " + silent.label(8);
  if (!stated_world_size(evidence)) one_of += ", or a rank that nothing here speaks of,";
  Finding finding;
  finding.code = "inconclusive";
  finding.severity = Severity::info;
  finding.confidence = Confidence::low;
  finding.summary = fmt::format("{} report{} that a peer went away; ", told.label(4), told.size() == 1 ? "s" : "");
  finding.summary +=
      silent == absent ? fmt::format("nothing here is of {}", silent.label(4))
                       : fmt::format("{} {} not say why it ended", silent.label(4), silent.size() == 1 ? "does" : "do");
  finding.explanation = fmt::format(
      "These errors are consequences. Either {} ended without a word that is in this evidence (perhaps with status 0, "
      "ahead of the others), or the network between them failed.\n",
      one_of);
  finding.advice = fmt::format("Give the logs of {} as well, and the kernel's log of their hosts.", silent.label(8));
  for (const End& end : ends) cite(finding, evidence, *end.event);
  return finding;
}

// Processes ended, each because of something else, and what that was is not shown.
std::optional<Finding> only_consequences(const Evidence& evidence, const std::vector<End>& ends) {
  if (ends.empty()) return std::nullopt;
  const auto stop = [](const End& end) {
    return asked_to_stop(end) || contains_text(end.what, "signalexception") ||
           contains_text(end.what, "keyboardinterrupt");
  };
  const auto report = std::find_if_not(ends.begin(), ends.end(), stop);
  Finding finding;
  finding.code = "inconclusive";
  finding.severity = Severity::info;
  finding.confidence = Confidence::low;
  if (report == ends.end()) {
    finding.summary = "the job was stopped from outside; why is not in this evidence";
    finding.explanation =
        "A signal to end it went to the launcher or to a rank: a scheduler does so at a time limit or to make room, a "
        "person to stop a job that hangs.\n";
    finding.advice =
        "Look at the scheduler's word on this job. If it hung before, give the dumps, logs or stacks of its ranks.";
  } else {
    finding.summary = fmt::format("{} {}: that follows from something else, which is not shown",
                                  name_of(evidence, *report), report->what);
    finding.explanation =
        "Its error speaks of another process or of the network, and nothing here says what went wrong there.\n";
    finding.advice = "Give the logs of all ranks, and the kernel's log of the hosts that the error names.";
  }
  for (const End& end : ends) cite(finding, evidence, *end.event);
  return finding;
}

}  // namespace

std::vector<Finding> judge_process_ends(const Evidence& evidence) {
  const std::vector<std::uint32_t> attempts = attempts_of(evidence);
  const std::uint32_t last = attempts.empty() ? 0 : *std::max_element(attempts.begin(), attempts.end());
  const std::set<std::uint32_t> work = attempts_with_work(evidence, attempts);
  std::vector<Finding> findings;
  for (const auto& [attempt, ends, any_timeout] : ends_by_attempt(evidence)) {
    const std::vector<End> all = one_a_rank(ends);
    std::vector<End> primary;
    std::vector<End> rest;
    for (const End& end : all) (end.consequence ? rest : primary).push_back(end);
    if (primary.empty()) {
      if (auto finding = another_size(evidence, ends)) {
        findings.push_back(std::move(*finding));
        continue;
      }
      if (auto finding = only_reports(evidence, all, any_timeout)) findings.push_back(std::move(*finding));
      continue;
    }
    // The launcher's word about a rank and that rank's nameless traceback are one end.
    const bool nameless =
        std::any_of(primary.begin(), primary.end(), [](const End& e) { return !e.rank && e.exception; });
    if (nameless) std::erase_if(primary, [](const End& end) { return end.by_launcher && end.weak; });
    Cause cause = pick_cause(primary);
    if (auto finding = unexplained_exits(evidence, cause, all)) {
      findings.push_back(std::move(*finding));
      continue;
    }
    std::set<const LogEvent*> causes;
    for (const End& end : cause.ends) causes.insert(end.event);
    for (const End& end : primary) {
      if (causes.count(end.event) == 0) rest.push_back(end);
    }
    Finding finding = dead_rank(evidence, all, std::move(cause), rest);
    if (last > attempt) {
      finding.subjects.push_back(fmt::format("attempt {}", attempt));
      finding.explanation += fmt::format("This ended attempt {}; attempt {} is in this evidence too.\n", attempt, last);
      if (work.upper_bound(attempt) != work.end()) finding.severity = Severity::warning;
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::optional<Finding> judge_unexplained_ends(const Evidence& evidence) {
  const std::vector<AttemptEnds> attempts = ends_by_attempt(evidence);
  return attempts.empty() ? std::nullopt : only_consequences(evidence, one_a_rank(attempts.back().ends));
}

}  // namespace ddx::analyzers
