#include "cli/report/sufficiency.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/units.h"

namespace ddx::cli {
namespace {

// Above this a stated world size is not spelt out rank by rank: a corrupt number must not cost gigabytes.
constexpr std::uint32_t kMaxWorld = 4'000'000;

bool concludes(const Finding& finding) {
  return finding.severity != Severity::info || finding.code == "no-fault" || finding.code == "no-desync";
}

// A log that holds such events alone would look the same had the job hung after its last line.
bool tells_of_a_hang(const LogFact& fact) {
  return std::visit(
      [](const auto& event) {
        using Event = std::decay_t<decltype(event)>;
        return !std::is_same_v<Event, ProgressNotice> && !std::is_same_v<Event, IdleNotice> &&
               !std::is_same_v<Event, RankAddress> && !std::is_same_v<Event, AttemptStart> &&
               !std::is_same_v<Event, LibraryVersion> && !std::is_same_v<Event, HostStack>;
      },
      fact);
}

bool tells_of_a_hang(const Trace& trace, const RankRecord& record) {
  return trace.program(record).size() > 0 ||
         std::any_of(record.progress.begin(), record.progress.end(), [](const CommProgress& progress) {
           return progress.last_enqueued || progress.last_started || progress.last_completed;
         });
}

std::string first_of(const std::vector<const Input*>& inputs) {
  std::string text = inputs.front()->path + ": " + inputs.front()->note;
  if (inputs.size() > 1) text += fmt::format(" (and {} more)", format_count(inputs.size() - 1));
  return text;
}

// Records of some ranks agree with each other whatever the others did.
std::string why_too_few(const Evidence& evidence) {
  std::vector<RankId> ranks;
  std::size_t unnamed = 0;
  for (const RankRecord& record : evidence.trace.ranks) {
    if (record.rank) {
      ranks.push_back(*record.rank);
    } else {
      ++unnamed;
    }
  }
  const RankSet recorded(std::move(ranks));
  RankSet known = ranks_expected(evidence.trace);
  known.insert(recorded);
  const RankSet missing = known.without(recorded);
  if (missing.empty() || (missing.size() - std::min(unnamed, missing.size())) * 2 < known.size()) return {};
  return fmt::format("there is no record of {} of {} ranks ({})", format_count(missing.size()),
                     format_count(known.size()), missing.text(8));
}

std::string why_not_whole(const Evidence& evidence) {
  std::vector<RankId> cut;
  for (const RankRecord& record : evidence.trace.ranks) {
    if (record.tail_lost) cut.push_back(record.rank.value_or(RankId(-1)));
  }
  const RankSet ranks(std::move(cut));
  if (!ranks.empty()) {
    const bool named = !ranks.contains(RankId(-1));
    return named ? fmt::format("the record{} of {} {} cut, and what came after is unknown",
                               ranks.size() == 1 ? "" : "s", ranks.label(8), ranks.size() == 1 ? "is" : "are")
                 : "a record is cut, and what came after is unknown";
  }
  return why_broken(evidence);
}

// Profiles are windows of a run: two of one rank are of two windows, and which one goes with the other ranks' nobody
// knows. (Of recorders' dumps the one that goes on longer is taken.)
std::string why_doubled(const Evidence& evidence) {
  std::map<std::tuple<RankId, std::string, std::optional<std::uint32_t>>, InputId> first;
  for (const RankRecord& record : evidence.trace.ranks) {
    const Input* input = evidence.input(record.input);
    if (!record.rank || !input || (input->format != "kineto" && input->format != "host-trace")) continue;
    const auto [at, fresh] = first.try_emplace({*record.rank, input->format, record.attempt}, *record.input);
    if (!fresh) {
      return fmt::format("rank {} has two records: {} and {}", record.rank->value, evidence.path(at->second),
                         evidence.path(record.input));
    }
  }
  return {};
}

std::string why_not_run(const Evidence& evidence) {
  constexpr std::string_view kWhy[] = {"replay.refused", "replay.ranks_absent", "replay.calls_untold",
                                       "replay.no_times", "replay.no_calls"};
  for (const std::string_view why : kWhy) {
    for (const Diagnostic& diagnostic : evidence.diagnostics.entries()) {
      if (diagnostic.name == why) return diagnostic.detail;
    }
  }
  return {};
}

}  // namespace

// The thing that can be helped first.
std::string why_nothing(const Evidence& evidence) {
  if (evidence.inputs.empty()) return "there is no file in what was given";
  std::vector<const Input*> unreadable, packed;
  std::size_t empty = 0;
  bool describes = false;
  for (const Input& input : evidence.inputs) {
    if (input.unreadable) unreadable.push_back(&input);
    if (input.note.starts_with("compressed")) packed.push_back(&input);
    if (input.note == "empty file") ++empty;
    describes = describes || input.format == "launch" || input.format == "env-table" || input.format == "address-table";
  }
  if (!unreadable.empty()) return first_of(unreadable);
  if (!packed.empty()) return first_of(packed);
  if (empty == evidence.inputs.size()) return empty == 1 ? "the file is empty" : "all files are empty";
  if (describes) return "it says how the job is launched, not what its ranks did: give their dumps and logs";
  const bool stacks = std::any_of(evidence.events.begin(), evidence.events.end(),
                                  [](const LogEvent& event) { return std::holds_alternative<HostStack>(event.fact); });
  if (stacks) return "stacks show where ranks stood, and these do not tell who is behind: give the dumps of the ranks";
  if (!evidence.events.empty()) {
    return "it shows that the job ran, and would do so too if it hung later: give the dumps or stacks of its ranks";
  }
  return "nothing in it speaks of a job";
}

std::string why_broken(const Evidence& evidence) {
  // What a reader opened and gave up held something of the job.
  std::vector<const Input*> lost;
  for (const Input& input : evidence.inputs) {
    if (input.unreadable && input.format != "unknown") lost.push_back(&input);
  }
  if (!lost.empty()) return first_of(lost);
  for (const Diagnostic& diagnostic : evidence.diagnostics.entries()) {
    if (diagnostic.name == "load.file_cut" || diagnostic.name == "chakra.dangling_dependency" ||
        diagnostic.name.ends_with(".truncated_file")) {
      return diagnostic.detail;
    }
  }
  return {};
}

RankSet ranks_expected(const Trace& trace) {
  std::vector<RankId> expected;
  for (const Communicator& comm : trace.communicators()) {
    expected.insert(expected.end(), comm.members.begin(), comm.members.end());
  }
  RankSet all(std::move(expected));
  if (trace.world_size && *trace.world_size > 0 && *trace.world_size <= kMaxWorld) {
    all.insert(RankSet::range(RankId(0), RankId(std::int64_t{*trace.world_size} - 1)));
  }
  return all;
}

std::string why_insufficient(const Evidence& evidence, const std::vector<Finding>& findings) {
  // What cannot be run has no outcome, whatever else is to be said of it; an error explains itself.
  const bool wrong =
      std::any_of(findings.begin(), findings.end(), [](const Finding& f) { return f.severity == Severity::error; });
  if (std::string why = why_not_run(evidence); !why.empty() && !wrong) return why;
  if (std::string why = why_doubled(evidence); !why.empty() && !wrong) return why;
  if (std::any_of(findings.begin(), findings.end(), concludes)) return {};
  const bool recorded = std::any_of(evidence.trace.ranks.begin(), evidence.trace.ranks.end(),
                                    [&](const RankRecord& r) { return tells_of_a_hang(evidence.trace, r); });
  const bool logged = std::any_of(evidence.events.begin(), evidence.events.end(),
                                  [](const LogEvent& event) { return tells_of_a_hang(event.fact); });
  const bool undecided =
      std::any_of(findings.begin(), findings.end(), [](const Finding& f) { return f.code == "inconclusive"; });
  // A finding that weighed what there is says more than that there is little.
  if (!recorded && !logged) return undecided ? "" : why_nothing(evidence);
  if (std::string why = recorded ? why_too_few(evidence) : ""; !why.empty()) return why;
  return why_not_whole(evidence);
}

}  // namespace ddx::cli
