// What is not there: ranks without a dump, cut files, a log that fell silent. A hole proves only that there is one.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzers/liveness/liveness.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

constexpr Nanos kSilence = 120 * kSecond;
constexpr std::size_t kMostNotes = 4;

struct Dumps {
  RankSet present;
  std::vector<const RankRecord*> cut;    // rows are missing at the end
  std::vector<const RankRecord*> rings;  // entries before the first row are gone
  std::size_t unnamed = 0;               // of no known rank
  bool any = false;
};

Dumps dumps_of(const Evidence& evidence) {
  Dumps dumps;
  std::vector<RankId> ranks;
  for (const RankRecord& record : evidence.trace.ranks) {
    if (!record.snapshot) continue;
    dumps.any = true;
    if (record.rank) ranks.push_back(*record.rank);
    if (!record.rank) ++dumps.unnamed;
    if (record.tail_lost) dumps.cut.push_back(&record);
    if (record.head_lost) dumps.rings.push_back(&record);
  }
  dumps.present = RankSet(std::move(ranks));
  return dumps;
}

RankSet ranks_of(const std::vector<const RankRecord*>& records) {
  std::vector<RankId> ranks;
  for (const RankRecord* record : records) {
    if (record->rank) ranks.push_back(*record->rank);
  }
  return RankSet(std::move(ranks));
}

// The ranks that dumps speak of: the members of their groups, and the stated world.
RankSet expected_ranks(const Evidence& evidence) {
  RankSet expected = known_ranks(evidence);
  for (const Communicator& comm : evidence.trace.communicators()) {
    if (!comm.synthesized) expected.insert(RankSet(comm.members));
  }
  return expected;
}

std::optional<Finding> holes(const Evidence& evidence, const RankSet& dead) {
  const Dumps dumps = dumps_of(evidence);
  if (!dumps.any) return std::nullopt;
  RankSet absent = expected_ranks(evidence).without(dumps.present).without(dead);
  // They may all be there, only not numbered, which is a finding of its own.
  if (dumps.unnamed >= absent.size()) absent = {};
  std::vector<const Input*> unreadable;
  for (const Input& input : evidence.inputs) {
    if (input.unreadable) unreadable.push_back(&input);
  }
  // A ring that overran is the recorder's normal state: told beside real holes only.
  if (absent.empty() && dumps.cut.empty() && unreadable.empty()) return std::nullopt;
  Finding finding;
  finding.code = "evidence-missing";
  finding.severity = Severity::info;
  finding.confidence = Confidence::high;
  std::vector<std::string> parts;
  if (!absent.empty()) {
    parts.push_back(fmt::format("no dump of {} ({} of {} ranks)", absent.label(6), absent.size(),
                                absent.size() + dumps.present.size()));
    finding.subjects.push_back(absent.label());
    finding.explanation += fmt::format(
        "What {} did cannot be known from here. A rank writes its dump when its own "
        "watchdog fires or another tells it to: no dump can mean that it died, that it "
        "was too busy to write, or that the file was not collected.\n",
        absent.label());
  }
  if (!dumps.cut.empty()) {
    const RankSet cut = ranks_of(dumps.cut);
    parts.push_back(cut.empty() ? std::string("a dump is cut")
                                : fmt::format("the dump{} of {} {} cut", cut.size() == 1 ? "" : "s", cut.label(6),
                                              cut.size() == 1 ? "is" : "are"));
    finding.explanation += "Entries behind the cut are unknown, not missing.\n";
  }
  if (!unreadable.empty())
    parts.push_back(fmt::format("{} unreadable file{}", unreadable.size(), unreadable.size() == 1 ? "" : "s"));
  for (std::size_t i = 0; i < unreadable.size() && i < kMostNotes; ++i) {
    finding.evidence.push_back({unreadable[i]->path, std::nullopt, unreadable[i]->note});
  }
  if (!dumps.rings.empty()) {
    const RankSet rings = ranks_of(dumps.rings);
    finding.explanation += fmt::format("The {} oldest entries: unknown, not missing.\n",
                                       rings.size() == 1 ? "ring of " + rings.label() + " has overwritten its"
                                                         : "rings of " + rings.label() + " have overwritten their");
  }
  finding.summary = "Evidence is missing: " + join_words(parts);
  finding.advice = absent.empty() ? "Collect the cut or unreadable files again."
                                  : fmt::format(
                                        "Look for the dumps and logs of {} on their hosts; a larger "
                                        "TORCH_FR_WAIT_TIMEOUT_DUMP_MILSEC gives slow ranks time to write.",
                                        absent.label(8));
  return finding;
}

struct Voice {
  const LogEvent* last = nullptr;  // of any kind
  const LogEvent* last_progress = nullptr;
  const LogEvent* first_timeout = nullptr;
};

std::map<RankId, Voice> voices_of(const Evidence& evidence) {
  std::map<RankId, Voice> voices;
  for (const LogEvent& event : evidence.events) {
    if (!event.rank || !event.time) continue;
    Voice& voice = voices[*event.rank];
    const auto later = [&event](const LogEvent* held) {
      return held == nullptr || elapsed(*held, event).value_or(0) >= 0;
    };
    if (later(voice.last)) voice.last = &event;
    if (std::holds_alternative<ProgressNotice>(event.fact) && later(voice.last_progress)) voice.last_progress = &event;
    if (std::holds_alternative<WatchdogTimeout>(event.fact) && voice.first_timeout == nullptr) {
      voice.first_timeout = &event;
    }
  }
  return voices;
}

// A rank that reported progress as the others did, and stopped minutes before they did, while they then timed out.
std::optional<Finding> silent_log(const Evidence& evidence, const RankSet& dead) {
  const std::map<RankId, Voice> voices = voices_of(evidence);
  const LogEvent* earliest_progress_end = nullptr;  // of the ranks that timed out
  std::size_t waiting = 0;
  for (const auto& [rank, voice] : voices) {
    if (voice.first_timeout == nullptr || voice.last_progress == nullptr) continue;
    ++waiting;
    if (earliest_progress_end == nullptr || elapsed(*earliest_progress_end, *voice.last_progress).value_or(0) < 0) {
      earliest_progress_end = voice.last_progress;
    }
  }
  std::vector<RankId> quiet;
  for (const auto& [rank, voice] : voices) {
    if (earliest_progress_end == nullptr || voice.first_timeout != nullptr || voice.last_progress == nullptr) continue;
    if (elapsed(*voice.last, *earliest_progress_end).value_or(0) >= kSilence) quiet.push_back(rank);
  }
  const RankSet silent = RankSet(std::move(quiet)).without(dead);
  if (silent.empty() || waiting < 2 || silent.size() >= waiting) return std::nullopt;
  Finding finding;
  finding.code = "lagging-rank";
  finding.severity = Severity::warning;
  finding.confidence = Confidence::low;
  finding.ranks = silent;
  for (const auto& [rank, voice] : voices) {
    if (silent.contains(rank)) cite(finding, evidence, *voice.last);
    if (voice.first_timeout == nullptr) continue;
    finding.victims.insert(rank);
    cite(finding, evidence, *voice.first_timeout);
  }
  finding.summary =
      fmt::format("The {} minutes before the others', which then time out",
                  silent.size() == 1 ? "log of " + silent.label() + " stops" : "logs of " + silent.label() + " stop");
  finding.explanation = fmt::format(
      "{} reported progress like the others and then fell silent, while {} went on and "
      "later timed out. Silence is weak evidence: output may be lost or buffered.\n",
      silent.label(), finding.victims.label());
  finding.advice = fmt::format("Look at what {} did after {} last line: a stack (py-spy dump) or the host's log.",
                               silent.label(), silent.size() == 1 ? "its" : "their");
  return finding;
}

}  // namespace

std::vector<Finding> judge_absence(const Evidence& evidence) {
  RankSet dead;
  for (const Finding& finding : judge_process_ends(evidence)) {
    if (finding.code == "dead-rank") dead.insert(finding.ranks);
  }
  std::vector<Finding> findings;
  if (auto finding = holes(evidence, dead)) findings.push_back(std::move(*finding));
  if (auto finding = silent_log(evidence, dead)) findings.push_back(std::move(*finding));
  return findings;
}

}  // namespace ddx::analyzers
