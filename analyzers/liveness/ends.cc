#include "analyzers/liveness/ends.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analyzers/liveness/exit_meaning.h"
#include "analyzers/log_view.h"
#include "analyzers/match/record_choice.h"

namespace ddx::analyzers {
namespace {

constexpr Nanos kGrace = 20 * kSecond;  // a launcher that asked a process to stop kills it after about 30 s

std::string exception_type(const std::string& what) {
  const std::string head = what.substr(0, what.find(':'));
  return head.substr(0, head.find(' '));
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

bool shows_open_call(const Program& program) {
  for (std::size_t row = program.size(); row-- > 0;) {
    if (in_flight(program.state(row)) && !program.retired(row)) return true;
  }
  return false;
}

// Ranks of that attempt that wrote their dumps while calls were waited in.
RankSet seen_in_hang(const Evidence& evidence, std::uint32_t attempt) {
  std::vector<RankId> dumped;
  bool waited = false;
  for (const RankRecord& record : evidence.trace.ranks) {
    if (!record.snapshot || record.whole_program || !record.rank) continue;
    if (attempt_of(evidence, record).value_or(attempt) != attempt) continue;
    dumped.push_back(*record.rank);
    waited = waited || shows_open_call(evidence.trace.program(record));
  }
  return waited ? RankSet(std::move(dumped)) : RankSet();
}

void mark_left_hang(std::vector<End>& ends, const Evidence& evidence, std::uint32_t attempt) {
  // Dumps are long, and most ends say more than a number.
  if (std::none_of(ends.begin(), ends.end(), [](const End& end) { return end.weak && end.rank; })) return;
  const RankSet seen = seen_in_hang(evidence, attempt);
  for (End& end : ends) end.left_hang = end.weak && end.rank && seen.contains(*end.rank);
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

}  // namespace

bool received_another_size(std::string_view what) {
  return contains_text(what, "size doesn't match expected size") || contains_text(what, "op.preamble.length");
}

bool speaks_of_a_peer(std::string_view what) {
  static constexpr std::string_view kParts[] = {"connection", "peer", "broken pipe", "socket", "remote"};
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [what](std::string_view part) { return contains_text(what, part); });
}

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
    // Of two words about one end the earlier is the closer to it: launchers look now and then only.
    const bool sooner = weight(end) == weight(held) && before(*end.event, *held.event).value_or(false);
    if (weight(end) > weight(held) || sooner) held = end;
    held.first_by_launcher = first;
  }
  return kept;
}

std::vector<AttemptEnds> ends_by_attempt(const Evidence& evidence) {
  std::map<std::uint32_t, std::vector<End>> by_attempt;
  for (End& end : collect(evidence, ProcessTable(evidence))) by_attempt[end.attempt].push_back(std::move(end));
  const std::vector<std::uint32_t> attempts = attempts_of(evidence);
  std::vector<AttemptEnds> all;
  for (auto& [attempt, ends] : by_attempt) {
    const Setting setting = setting_of(evidence, attempts, attempt);
    mark_consequences(ends, setting);
    mark_left_hang(ends, evidence, attempt);
    drop_caught(ends, setting);
    if (!ends.empty()) all.push_back({attempt, std::move(ends), setting.any_timeout});
  }
  return all;
}

}  // namespace ddx::analyzers
