// Whose end came first. Ends that only report another's (a closed connection, the launcher's SIGTERM, the watchdog's
// abort) are consequences; of the rest the earliest is the cause, together with those that ended alike at that moment.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analyzers/liveness/exit_meaning.h"
#include "analyzers/liveness/liveness.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

constexpr Nanos kSameMoment = 5 * kSecond;  // ends of one kind this close together have one cause
constexpr Nanos kGrace = 20 * kSecond;      // a launcher that asked a process to stop kills it after about 30 s
constexpr std::size_t kMostEnds = 4;        // spelled out in one explanation

struct End {
  const LogEvent* event = nullptr;
  std::optional<RankId> rank;
  std::string what;  // "raised KeyError: 'x' (train.py:565)": follows the name of the rank
  std::string kind;  // equal for ends of one kind: the exception's type, the signal
  std::uint32_t attempt = 0;
  std::optional<std::int64_t> signal;
  bool exception = false;          // of the user's program: the process itself said why
  bool weak = false;               // an exit code alone
  bool perhaps_caught = false;     // its rank reports work after it
  bool consequence = false;        // of another end, or of a hang
  bool first_by_launcher = false;  // torchelastic's "first observed failure"
  bool by_launcher = false;
};

std::string exception_type(const std::string& what) {
  const std::string head = what.substr(0, what.find(':'));
  return head.substr(0, head.find(' '));
}

bool received_another_size(std::string_view what) {
  return contains_text(what, "size doesn't match expected size") || contains_text(what, "op.preamble.length");
}

// Errors that name another's fault, or have a judge of their own.
bool tells_of_others(std::string_view what) {
  static constexpr std::string_view kParts[] = {"store based barrier",
                                                "detected mismatch between collectives",
                                                "host not found",
                                                "name or service not known",
                                                "temporary failure in name resolution",
                                                "childfailederror",
                                                "keyboardinterrupt",
                                                "signalexception",
                                                "watchdog caught collective",
                                                "systemexit: 0"};
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [what](std::string_view part) { return contains_text(what, part); }) ||
         received_another_size(what);
}

bool speaks_of_a_peer(std::string_view what) {
  static constexpr std::string_view kParts[] = {"connection", "peer", "broken pipe", "socket", "remote"};
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [what](std::string_view part) { return contains_text(what, part); });
}

End end_of(const LogEvent& event, const ProcessEnd& fact) {
  End end;
  end.event = &event;
  end.signal = fact.signal;
  end.consequence = fact.secondary || tells_of_others(fact.what) || speaks_of_nan(fact.what);
  switch (fact.kind) {
    case ProcessEnd::Kind::exception:
      end.exception = true;
      end.what = "raised " + (fact.what.empty() ? std::string("an exception") : fact.what);
      end.kind = exception_type(fact.what);
      break;
    case ProcessEnd::Kind::oom_kill:
      end.what = "was killed by the kernel, which was out of memory";
      end.kind = "SIGKILL";
      break;
    case ProcessEnd::Kind::exit_code:
      end.signal = signal_of_exit(fact.exit_code.value_or(1));
      end.what = exit_text(fact.exit_code.value_or(1));
      end.kind = end.what;
      end.weak = !end.signal;
      break;
    case ProcessEnd::Kind::abort: end.signal = fact.signal.value_or(6); [[fallthrough]];
    case ProcessEnd::Kind::signal:
      end.kind = end.signal ? signal_text(*end.signal) : fact.what;
      end.what = "crashed: " + (fact.what.empty() ? end.kind : fact.what);
      if (end.signal == 9) end.what = "was killed: " + signal_text(9);
      break;
  }
  if (!fact.call_site.empty()) end.what += fmt::format(" ({})", fact.call_site);
  return end;
}

std::optional<std::int64_t> pid_in(const std::string& text) {
  const auto at = text.find("PID ");
  if (at == std::string::npos) return std::nullopt;
  std::int64_t pid = 0;
  std::size_t digits = 0;
  for (std::size_t i = at + 4; i < text.size() && text[i] >= '0' && text[i] <= '9' && digits < 12; ++i, ++digits) {
    pid = pid * 10 + (text[i] - '0');
  }
  return digits > 0 ? std::optional(pid) : std::nullopt;
}

End end_of(const LogEvent& event, const ElasticFailure& fact) {
  End end;
  end.event = &event;
  end.rank = fact.rank;
  end.by_launcher = true;
  end.first_by_launcher = fact.root_cause;
  const std::int64_t code = fact.exit_code.value_or(1);
  end.signal = signal_of_exit(code);
  end.what = end.signal == 9 ? "was killed: " + signal_text(9) : exit_text(code);
  end.kind = end.signal ? signal_text(*end.signal) : end.what;
  end.weak = !end.signal;
  end.consequence = tells_of_others(fact.text);
  return end;
}

// Lines that show that the process (or, in a file of all, the job) went on, and those of a new start.
class Continuation {
 public:
  explicit Continuation(const Evidence& evidence, const std::vector<std::uint32_t>& attempts) {
    for (std::size_t i = 0; i < evidence.events.size(); ++i) {
      const LogEvent& event = evidence.events[i];
      if (std::holds_alternative<ProgressNotice>(event.fact)) {
        if (event.rank) {
          own_[{event.input, attempts[i], *event.rank}] = event.line;
        } else {
          nameless_[{event.input, attempts[i]}].push_back(event.line);
        }
      } else if (starts(event.fact)) {
        starts_[event.input].push_back(event.line);
      }
    }
  }

  // An exception that somebody caught: the rank that raised it reports work later on. Lines without a rank may be of
  // others, who can finish the step at hand but no more; so it takes several of them.
  bool caught(const LogEvent& event, std::uint32_t attempt) const {
    std::uint64_t until = 0;
    if (event.rank) {
      const auto own = own_.find({event.input, attempt, *event.rank});
      if (own != own_.end()) until = own->second;
    }
    const auto lines = nameless_.find({event.input, attempt});
    if (until <= event.line && lines != nameless_.end()) {
      const auto first = std::upper_bound(lines->second.begin(), lines->second.end(), event.line);
      const bool many = first != lines->second.end() && lines->second.back() - *first >= kSeveral;
      if (many) until = lines->second.back();
    }
    if (until <= event.line) return false;
    // A process that was started again reports work too.
    const auto starts = starts_.find(event.input);
    if (starts == starts_.end()) return true;
    const auto next = std::upper_bound(starts->second.begin(), starts->second.end(), event.line);
    return next == starts->second.end() || *next > until;
  }

 private:
  static constexpr std::uint64_t kSeveral = 10;

  static bool starts(const LogFact& fact) {
    return std::holds_alternative<CommInit>(fact) || std::holds_alternative<StoreBarrier>(fact) ||
           std::holds_alternative<StoreJoin>(fact) || std::holds_alternative<LibraryVersion>(fact) ||
           std::holds_alternative<AttemptStart>(fact);
  }

  std::map<std::tuple<InputId, std::uint32_t, RankId>, std::uint64_t> own_;  // the last line of progress
  std::map<std::pair<InputId, std::uint32_t>, std::vector<std::uint64_t>> nameless_;
  std::map<InputId, std::vector<std::uint64_t>> starts_;
};

std::vector<End> collect(const Evidence& evidence, const ProcessTable& processes) {
  const std::vector<std::uint32_t> attempts = attempts_of(evidence);
  // A line that another judge reads is not read here as well.
  std::set<std::pair<InputId, std::uint64_t>> told;
  for (const LogEvent& event : evidence.events) {
    const bool ends = std::holds_alternative<ProcessEnd>(event.fact) ||
                      std::holds_alternative<ElasticFailure>(event.fact) ||
                      std::holds_alternative<LibraryVersion>(event.fact);  // which many exceptions end with
    if (!ends && event.line > 0) told.insert({event.input, event.line});
  }
  const Continuation continuation(evidence, attempts);
  std::vector<End> ends;
  for (std::size_t i = 0; i < evidence.events.size(); ++i) {
    const LogEvent& event = evidence.events[i];
    End end;
    if (const auto* process = std::get_if<ProcessEnd>(&event.fact)) {
      if (process->kind == ProcessEnd::Kind::exit_code && process->exit_code == 0) continue;
      end = end_of(event, *process);
      end.perhaps_caught = end.exception && continuation.caught(event, attempts[i]);
      if (told.count({event.input, event.line}) > 0) end.consequence = true;
    } else if (const auto* failure = std::get_if<ElasticFailure>(&event.fact)) {
      if (failure->exit_code == 0) continue;
      end = end_of(event, *failure);
      if (!end.rank) {
        if (const auto pid = pid_in(failure->text)) end.rank = processes.rank_of(*pid);
      }
    } else {
      continue;
    }
    if (!end.rank && !end.by_launcher) end.rank = processes.rank_of(event);
    if (!end.rank && event.pid) end.rank = processes.rank_of(*event.pid);
    end.attempt = attempts[i];
    ends.push_back(std::move(end));
  }
  return ends;
}

// What the ends of one attempt are judged against.
struct Setting {
  std::vector<std::pair<RankId, const LogEvent*>> timeouts;  // sorted by rank
  bool any_timeout = false;

  bool timed_out(const std::optional<RankId>& rank) const {
    if (!rank) return any_timeout;
    const auto at =
        std::lower_bound(timeouts.begin(), timeouts.end(), std::pair<RankId, const LogEvent*>{*rank, nullptr});
    return at != timeouts.end() && at->first == *rank;
  }
  // The earliest time-outs, of two ranks: whether another rank's came before an end needs no more of them.
  std::vector<std::pair<RankId, const LogEvent*>> earliest;

  bool after_a_timeout(const End& end) const {
    return std::any_of(earliest.begin(), earliest.end(), [&end](const auto& timeout) {
      const auto between = elapsed(*timeout.second, *end.event);
      return (!end.rank || timeout.first != *end.rank) && between && *between >= 0;
    });
  }
  void find_earliest() {
    for (int pass = 0; pass < 2; ++pass) {
      const std::pair<RankId, const LogEvent*>* best = nullptr;
      for (const auto& timeout : timeouts) {
        if (!timeout.second->time || (!earliest.empty() && earliest.front().first == timeout.first)) continue;
        if (best == nullptr || elapsed(*timeout.second, *best->second).value_or(0) > 0) best = &timeout;
      }
      if (best != nullptr) earliest.push_back(*best);
    }
  }
};

Setting setting_of(const Evidence& evidence, const std::vector<std::uint32_t>& attempts, std::uint32_t attempt) {
  Setting setting;
  for (std::size_t i = 0; i < evidence.events.size(); ++i) {
    const LogEvent& event = evidence.events[i];
    if (attempts[i] != attempt || !std::holds_alternative<WatchdogTimeout>(event.fact)) continue;
    setting.any_timeout = true;
    if (event.rank) setting.timeouts.emplace_back(*event.rank, &event);
  }
  std::sort(setting.timeouts.begin(), setting.timeouts.end());
  setting.find_earliest();
  return setting;
}

// A signal that ends a process from outside or by its own fault, not the launcher's request or the process's own abort.
bool fatal_signal(const End& end) { return end.signal && *end.signal != 15 && *end.signal != 2 && *end.signal != 6; }

// Whether the rank that the launcher saw end first said itself why, or was killed.
bool first_is_explained(const std::vector<End>& ends) {
  std::vector<RankId> first;
  for (const End& end : ends) {
    if (end.first_by_launcher && end.rank) first.push_back(*end.rank);
  }
  const RankSet roots(std::move(first));
  return std::any_of(ends.begin(), ends.end(), [&roots](const End& end) {
    const bool of_it = end.first_by_launcher || (end.rank && roots.contains(*end.rank)) || (!end.rank && end.exception);
    return of_it && !end.consequence && !end.weak;
  });
}

void mark_consequences(std::vector<End>& ends, const Setting& setting) {
  std::vector<RankId> secondary;
  for (const End& end : ends) {
    if (end.consequence && end.rank && !end.by_launcher) secondary.push_back(*end.rank);
  }
  const RankSet reporters(std::move(secondary));
  for (End& end : ends) {
    const bool asked_to_stop = end.signal == 15 || end.signal == 2;
    const bool gave_up = end.signal == 6 || end.weak;  // after saying why, if it did
    const bool watchdog_abort = gave_up && setting.timed_out(end.rank);
    const bool of_its_report = gave_up && end.rank && reporters.contains(*end.rank);
    const bool killed_after_hang = end.signal.has_value() && setting.after_a_timeout(end);
    if (asked_to_stop || watchdog_abort || of_its_report || killed_after_hang) end.consequence = true;
  }
  // What the launcher saw later follows from what it saw first; but it looks now and then only, so a rank that was
  // killed may come behind the survivors that fell over it.
  const auto root = std::find_if(ends.begin(), ends.end(), [](const End& end) { return end.first_by_launcher; });
  if (root == ends.end()) return;
  const bool explained = first_is_explained(ends);
  for (End& end : ends) {
    if (!end.by_launcher || end.first_by_launcher) continue;
    const bool long_after = elapsed(*root->event, *end.event).value_or(0) >= kGrace;
    if (explained || !fatal_signal(end) || long_after) end.consequence = true;
  }
}

// One end for each rank: the one that says most.
std::vector<End> one_a_rank(const std::vector<End>& ends) {
  std::vector<End> kept;
  std::map<RankId, std::size_t> index;
  const auto weight = [](const End& end) {
    return (end.consequence ? 0 : 4) + (end.exception ? 2 : 0) + (end.weak ? 0 : 1);
  };
  for (const End& end : ends) {
    if (!end.rank) {
      kept.push_back(end);
      continue;
    }
    const auto [at, fresh] = index.emplace(*end.rank, kept.size());
    if (fresh) {
      kept.push_back(end);
      continue;
    }
    End& held = kept[at->second];
    const bool first = held.first_by_launcher || end.first_by_launcher;
    if (weight(end) > weight(held)) held = end;
    held.first_by_launcher = first;
  }
  return kept;
}

// Exceptions that were caught are no ends, as long as nothing else went wrong. Where something did, the lines behind
// one may also be what its process still had in its buffers.
void drop_caught(std::vector<End>& ends, const Setting& setting) {
  const bool all_went_on =
      std::all_of(ends.begin(), ends.end(), [](const End& end) { return end.perhaps_caught || end.consequence; });
  const bool fell = std::any_of(ends.begin(), ends.end(), [](const End& end) { return !end.exception; });
  if (all_went_on && !fell && !setting.any_timeout) {
    std::erase_if(ends, [](const End& end) { return end.perhaps_caught; });
  }
}

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
      "Of the {} ranks known, {} left a recorder dump; {} left none: the process ended "
      "otherwise than by the time-out that made the others write theirs.\n",
      known_ranks(evidence).size(), with_dump.size(), without.label());
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
    finding.summary = fmt::format("{} {}", who, first.what);
  } else {
    finding.summary = fmt::format("{} ended by errors of their own; which came first is not known", who);
  }
  if (!finding.victims.empty()) {
    finding.summary +=
        fmt::format("; {} only {} on it", finding.victims.label(4), finding.victims.size() == 1 ? "waits" : "wait");
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
  finding.explanation += fmt::format(
      "The end of {} is a consequence: later, asked for by the launcher, or only a "
      "report that a peer was gone.\n",
      ranks.label());
  for (const End& end : consequences) {
    if (end.rank && ranks.contains(*end.rank)) cite(finding, evidence, *end.event);
  }
}

Confidence confidence_of(const Cause& cause, const Finding& finding, bool inferred, const Evidence& evidence) {
  if (std::any_of(cause.ends.begin(), cause.ends.end(), [](const End& end) { return end.perhaps_caught; }))
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
  finding.summary =
      fmt::format("{} received data of another size than it expects, and gave up; who is wrong is not shown",
                  finding.victims.empty() ? std::string("A rank") : finding.victims.label(4));
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

// All that is known are reports that some peer went away.
std::optional<Finding> only_reports(const Evidence& evidence, const std::vector<End>& ends, const Setting& setting) {
  std::vector<RankId> reporters;
  for (const End& end : ends) {
    if (contains_text(end.what, "timed out waiting")) return std::nullopt;  // a wait: they left each other
    if (end.exception && end.rank && speaks_of_a_peer(end.what)) reporters.push_back(*end.rank);
  }
  const RankSet told(std::move(reporters));
  const RankSet silent = known_ranks(evidence).without(told);
  if (told.empty() || silent.empty() || setting.any_timeout) return std::nullopt;
  Finding finding;
  finding.code = "inconclusive";
  finding.severity = Severity::info;
  finding.confidence = Confidence::low;
  finding.summary = fmt::format("{} report{} that a peer went away; {} {} not say why it ended", told.label(4),
                                told.size() == 1 ? "s" : "", silent.label(4), silent.size() == 1 ? "does" : "do");
  finding.explanation = fmt::format(
      "These errors are consequences. Either one of {} died without a word that is in this evidence, or the network "
      "between them failed.\n",
      silent.label());
  finding.advice = fmt::format("Give the logs of {} as well, and the kernel's log of their hosts.", silent.label(8));
  for (const End& end : ends) cite(finding, evidence, *end.event);
  return finding;
}

}  // namespace

std::vector<Finding> judge_process_ends(const Evidence& evidence) {
  const ProcessTable processes(evidence);
  std::map<std::uint32_t, std::vector<End>> by_attempt;
  for (End& end : collect(evidence, processes)) by_attempt[end.attempt].push_back(std::move(end));
  const std::vector<std::uint32_t> attempts = attempts_of(evidence);
  const std::uint32_t last = attempts.empty() ? 0 : *std::max_element(attempts.begin(), attempts.end());
  const std::set<std::uint32_t> work = attempts_with_work(evidence, attempts);
  std::vector<Finding> findings;
  for (auto& [attempt, ends] : by_attempt) {
    const Setting setting = setting_of(evidence, attempts, attempt);
    mark_consequences(ends, setting);
    drop_caught(ends, setting);
    if (ends.empty()) continue;
    const std::vector<End> all = one_a_rank(ends);
    std::vector<End> primary;
    std::vector<End> rest;
    for (const End& end : all) (end.consequence ? rest : primary).push_back(end);
    if (primary.empty()) {
      if (auto finding = another_size(evidence, ends)) {
        findings.push_back(std::move(*finding));
        continue;
      }
      if (auto finding = only_reports(evidence, all, setting)) findings.push_back(std::move(*finding));
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

}  // namespace ddx::analyzers
