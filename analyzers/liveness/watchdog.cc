// What watchdog lines alone prove. For each group at most one finding: contradictions first (type, size), then ranks
// that never enqueued the operation, then what can be said when all who speak agree.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzers/liveness/liveness.h"
#include "analyzers/liveness/watchdog_group.h"

namespace ddx::analyzers {
namespace {

constexpr Nanos kShortTimeout = 60 * kSecond;  // below it a first step, a checkpoint or a compile may take longer
constexpr std::size_t kMostClasses = 4;

using Classes = std::map<std::string, std::vector<RankId>>;

// One group, and what it is judged against.
struct View {
  const Evidence& evidence;
  const WatchdogGroup& group;
  const WatchdogSetting& setting;
  const std::vector<Seen<HeartbeatStuck>>& heartbeats;
};

std::string describe(const Classes& classes, const char* noun) {
  std::vector<std::string> parts;
  for (const auto& [value, ranks] : classes) {
    parts.push_back(fmt::format("{} {} on {}", value, noun, RankSet(ranks).label(6)));
  }
  return join_words(parts, kMostClasses);
}

Finding start(const WatchdogGroup& group, const char* code, Severity severity, Confidence confidence) {
  Finding finding;
  finding.code = code;
  finding.severity = severity;
  finding.confidence = confidence;
  if (!group.name.empty()) finding.subjects.push_back("group " + group.name);
  finding.subjects.push_back(fmt::format("seq {}", group.seq));
  return finding;
}

std::string op_at(const WatchdogGroup& group) {
  for (const WatchdogVoice& voice : group.voices) {
    if (const auto* timeout = voice.timeout_at(group.seq)) return timeout->fact->op_type;
  }
  return "an operation";
}

// Cites `wanted` first, then a few of the others.
void cite_voices(const Evidence& evidence, const WatchdogGroup& group, const RankSet& wanted, Finding& finding) {
  for (const bool chosen : {true, false}) {
    std::size_t cited = 0;
    for (const WatchdogVoice& voice : group.voices) {
      if (wanted.contains(voice.rank) != chosen || cited >= 5) continue;
      const auto* timeout = voice.timeout_at(group.seq);
      cite(finding, evidence, timeout != nullptr ? *timeout->event : voice.event());
      if (voice.status) cite(finding, evidence, *voice.status->event);
      ++cited;
    }
  }
}

// Who is not here at all, and who is, but not with a time-out.
void tell_unseen(const View& view, Finding& finding) {
  const RankSet unseen = view.group.unseen();
  const RankSet silent = unseen.common(view.setting.heard);
  const RankSet nowhere = unseen.without(silent);
  if (!silent.empty()) {
    finding.explanation += fmt::format("Other lines of {} are here, but no time-out.\n", silent.label());
  }
  if (nowhere.empty()) return;
  const bool numbering = view.group.members_assumed && view.setting.size == 0;
  finding.explanation += fmt::format("Nothing is here from {}{}.\n", nowhere.label(),
                                     numbering ? " (assumed from the numbering; the world size is not stated)" : "");
}

// Heartbeat lines come N s after the first time-out because the process is being taken down.
void tell_heartbeats(const View& view, Finding& finding) {
  if (view.heartbeats.empty()) return;
  const auto& [event, fact] = view.heartbeats.front();
  const LogEvent* first = nullptr;
  for (const WatchdogVoice& voice : view.group.voices) {
    if (first == nullptr || elapsed(*first, voice.event()).value_or(0) < 0) first = &voice.event();
  }
  const auto later = first != nullptr ? elapsed(*first, *event) : std::nullopt;
  cite(finding, view.evidence, *event);
  // Both are lengths of time here, so that their difference has a value.
  const bool known = later && *later >= 0 && fact->stuck_for >= 0;
  const Nanos off = known ? *later - fact->stuck_for : 0;
  const bool exact = known && std::max(off, -off) <= 15 * kSecond + fact->stuck_for / 20;
  finding.explanation += fmt::format(
      "The heartbeat message ({} without progress{}) is a consequence: the watchdog of a process that is already "
      "being "
      "taken down. A longer heartbeat time-out would change nothing.\n",
      format_duration(fact->stuck_for), exact ? ", and it comes just that long after the first time-out" : "");
}

// ---- contradictions -------------------------------------------------------------------------------------------------

// The odd rank has at `seq` what the others have one later (it skipped one), or the reverse (it has one more).
std::optional<Finding> shifted_by_one(const Evidence& evidence, const WatchdogGroup& group, const RankSet& odd) {
  const auto same = [](const Seen<WatchdogTimeout>* a, const Seen<WatchdogTimeout>* b) {
    return a != nullptr && b != nullptr && a->fact->op_type == b->fact->op_type &&
           a->fact->numel_in == b->fact->numel_in && a->fact->numel_out == b->fact->numel_out;
  };
  if (odd.empty() || odd.size() * 2 >= group.voices.size()) return std::nullopt;
  bool skipped = true;
  bool extra = true;
  for (const WatchdogVoice& mine : group.voices) {
    if (!odd.contains(mine.rank)) continue;
    for (const WatchdogVoice& theirs : group.voices) {
      if (odd.contains(theirs.rank)) continue;
      skipped = skipped && same(mine.timeout_at(group.seq), theirs.timeout_at(group.seq + 1));
      extra = extra && same(mine.timeout_at(group.seq + 1), theirs.timeout_at(group.seq));
    }
  }
  if (skipped == extra) return std::nullopt;
  Finding finding = start(group, "rank-skipped", Severity::error, Confidence::medium);
  finding.ranks = odd;
  finding.victims = group.speakers.without(odd);
  finding.summary = fmt::format("{} {} one operation before seq {} of {}", odd.label(4),
                                skipped ? "skipped" : "ran one more:", group.seq, group.label());
  if (extra) {
    finding.summary = fmt::format("{} ran one operation more than the others, at seq {} of {}", odd.label(4), group.seq,
                                  group.label());
  }
  finding.explanation = fmt::format("At seq {} {} {} what the other ranks have {}: moved by one, the lists agree.\n",
                                    skipped ? group.seq : group.seq + 1, odd.label(), odd.size() == 1 ? "has" : "have",
                                    skipped ? "one later" : "one earlier");
  finding.advice = "Look for a branch that this rank takes differently before that operation.";
  cite_voices(evidence, group, odd, finding);
  return finding;
}

std::optional<Finding> type_mismatch(const View& view) {
  const WatchdogGroup& group = view.group;
  Classes classes;
  for (const WatchdogVoice& voice : group.voices) {
    const auto* timeout = voice.timeout_at(group.seq);
    if (timeout == nullptr || timeout->fact->op_type.empty()) continue;
    // The two ends of a point-to-point operation differ by right.
    if (contains_text(timeout->fact->op_type, "send") || contains_text(timeout->fact->op_type, "recv")) continue;
    classes[timeout->fact->op_type].push_back(voice.rank);
  }
  if (classes.size() < 2) return std::nullopt;
  const RankSet odd = minority(classes);
  if (auto skipped = shifted_by_one(view.evidence, group, odd)) return skipped;
  Finding finding =
      start(group, "mismatch-type", Severity::error,
            odd.size() < group.speakers.size() && !group.name.empty() ? Confidence::high : Confidence::medium);
  finding.ranks = odd;
  finding.victims = group.speakers.without(odd);
  finding.summary =
      fmt::format("Different operations at seq {} of {}: {}", group.seq, group.label(), describe(classes, ""));
  finding.explanation =
      "The same sequence number of one group holds different operations on different ranks, so they "
      "wait for each other.\n";
  if (group.name.empty()) finding.explanation += "The lines do not name the group: they are taken to be of one.\n";
  if (odd.size() == group.speakers.size()) finding.explanation += "No side has a majority: nobody is singled out.\n";
  finding.advice = "Compare the code paths that lead these ranks to this operation.";
  tell_unseen(view, finding);
  cite_voices(view.evidence, group, odd, finding);
  return finding;
}

std::optional<Finding> size_mismatch(const View& view) {
  const WatchdogGroup& group = view.group;
  Classes classes;
  for (const WatchdogVoice& voice : group.voices) {
    const auto* timeout = voice.timeout_at(group.seq);
    const auto size = timeout != nullptr ? comparable_size(*timeout->fact) : std::nullopt;
    if (size) classes[*size].push_back(voice.rank);
  }
  if (classes.size() < 2) return std::nullopt;
  const RankSet odd = minority(classes);
  if (auto skipped = shifted_by_one(view.evidence, group, odd)) return skipped;
  const bool equal_sides = odd.size() == group.speakers.size();
  Finding finding = start(group, "mismatch-size", Severity::error, equal_sides ? Confidence::medium : Confidence::high);
  finding.ranks = odd;
  finding.victims = group.speakers.without(odd);
  finding.summary =
      fmt::format("{} at seq {} has different sizes: {}", op_at(group), group.seq, describe(classes, "elements"));
  finding.explanation = fmt::format(
      "All these ranks timed out in the same operation (seq {} of {}), but not with the "
      "same element counts, which must agree. It is not the network.\n",
      group.seq, group.label());
  if (equal_sides) finding.explanation += "No size has a majority: nobody is singled out.\n";
  finding.advice =
      "Make the tensor the same on all ranks: look at what shapes it there (last batch, padding, unused "
      "parameters).";
  tell_unseen(view, finding);
  cite_voices(view.evidence, group, odd, finding);
  return finding;
}

// All agree, on sizes that cannot be right.
std::optional<Finding> wrong_ratio(const Evidence& evidence, const WatchdogGroup& group) {
  for (const WatchdogVoice& voice : group.voices) {
    const auto* timeout = voice.timeout_at(group.seq);
    if (timeout == nullptr || !contains_text(timeout->fact->op_type, "base")) continue;
    const auto size = implied_size(*timeout->fact);
    if (!size) continue;
    const bool wrong = *size == 0 || (group.size_stated && group.size && !group.name.empty() && *size != *group.size);
    if (!wrong) return std::nullopt;
    Finding finding = start(group, "mismatch-size", Severity::error, Confidence::medium);
    finding.ranks = group.speakers;
    finding.summary = fmt::format("{} at seq {}: {} in and {} out do not fit {} ranks", timeout->fact->op_type,
                                  group.seq, format_count(timeout->fact->numel_in.value_or(0)),
                                  format_count(timeout->fact->numel_out.value_or(0)),
                                  group.size ? std::to_string(*group.size) : "any number of");
    finding.explanation = "All ranks agree, and all are wrong: one side must be the other times the number of ranks.\n";
    finding.advice = "Size the output (or input) buffer as the input (or output) times the group's size.";
    cite_voices(evidence, group, group.speakers, finding);
    return finding;
  }
  return std::nullopt;
}

// ---- who is missing -------------------------------------------------------------------------------------------------

// One file holds the lines of all who speak: a rank without a line there is silent, not just not collected.
bool one_file(const WatchdogGroup& group) {
  return std::all_of(group.voices.begin(), group.voices.end(), [&group](const WatchdogVoice& voice) {
    return voice.event().input == group.voices.front().event().input;
  });
}

// Who never came, and how that is known.
struct Absent {
  RankSet ranks;
  Confidence confidence = Confidence::medium;
  std::string why;
};

// Ranks that timed out in this group before its common operation.
std::vector<RankId> earlier_here(const WatchdogGroup& group) {
  std::vector<RankId> ranks;
  for (const WatchdogVoice& voice : group.voices) {
    if (!voice.timeouts.empty() && *voice.failed_seq() < group.seq) ranks.push_back(voice.rank);
  }
  return ranks;
}

// By their own status lines.
Absent behind_by_status(const View& view) {
  const WatchdogGroup& group = view.group;
  std::vector<RankId> behind;
  for (const WatchdogVoice& voice : group.voices) {
    const auto enqueued = voice.last_enqueued();
    const bool earlier = voice.timeouts.empty() || *voice.failed_seq() < group.seq;
    if (earlier && enqueued && *enqueued < group.seq) behind.push_back(voice.rank);
  }
  Absent absent;
  // Who waits elsewhere is a victim there; who waits earlier in this very group is not.
  RankSet elsewhere = view.setting.waiting;
  for (RankId rank : earlier_here(group)) elsewhere.erase(rank);
  absent.ranks = RankSet(std::move(behind)).without(elsewhere);
  absent.confidence = group.size && group.unseen().empty() ? Confidence::high : Confidence::medium;
  absent.why = fmt::format("By their own status lines {} never enqueued seq {}", absent.ranks.label(), group.seq);
  const RankSet stuck = absent.ranks.common(RankSet(earlier_here(group)));
  if (!stuck.empty()) {
    absent.confidence = Confidence::low;
    absent.why += fmt::format(
        ": {} still {} in an earlier operation, which the others count as done ({} something else there)",
        stuck.label(), stuck.size() == 1 ? "waits" : "wait",
        stuck.size() == 1 ? "its device may be behind, or it calls" : "their devices may be behind, or they call");
  }
  return absent;
}

// Silence: of ranks whose other lines are here it says more than of ranks that are nowhere.
Absent silent_here(const View& view) {
  const WatchdogGroup& group = view.group;
  const RankSet unseen = group.unseen().without(view.setting.waiting).without(view.setting.lost_a_peer);
  if (unseen.empty() || group.voices.size() < 2) return {};
  const RankSet silent = unseen.common(view.setting.heard);
  const bool heard = silent == unseen;
  const bool nearly_all = unseen.size() * 4 <= group.members.size() && one_file(group) && !group.members_assumed;
  // Of a size that nothing states, only a clear minority is believed.
  const std::size_t share = group.members_assumed ? 3 : 2;
  if ((!heard && !nearly_all) || silent.size() * share > group.members.size()) return {};
  Absent absent;
  absent.ranks = unseen;
  // Lines that name no group may be of a smaller one that the silent ranks are not in.
  const bool sure = heard && !(group.members_assumed && group.name.empty());
  absent.confidence = sure ? Confidence::medium : Confidence::low;
  absent.why = fmt::format("{} {} no time-out at seq {} while all others have: {}", unseen.label(),
                           unseen.size() == 1 ? "has" : "have", group.seq,
                           heard ? "other lines of theirs are here, so their logs were collected"
                                 : "silence is the only sign, and their logs may just not be here");
  return absent;
}

std::optional<Finding> missing(const View& view) {
  const WatchdogGroup& group = view.group;
  Absent absent = behind_by_status(view);
  if (absent.ranks.empty()) absent = silent_here(view);
  if (absent.ranks.empty() || absent.ranks.size() * 2 > group.members.size()) return std::nullopt;
  Finding finding = start(group, "missing-ranks", Severity::error, absent.confidence);
  finding.ranks = absent.ranks;
  finding.victims = group.speakers.without(absent.ranks);
  const RankSet& at = finding.victims;
  finding.summary = fmt::format("{} never joined {} at seq {} of {}; {} {} there", absent.ranks.label(4), op_at(group),
                                group.seq, group.label(), at.label(4), at.size() == 1 ? "waits" : "wait");
  finding.explanation = absent.why + ".\n";
  if (!group.unseen().without(absent.ranks).empty()) tell_unseen(view, finding);
  finding.advice =
      fmt::format("Look at what {} did instead: its stack, its last lines, its dump.", absent.ranks.label(4));
  cite_voices(view.evidence, group, absent.ranks, finding);
  tell_heartbeats(view, finding);
  return finding;
}

// ---- all who speak agree --------------------------------------------------------------------------------------------

std::optional<Finding> not_started(const View& view) {
  const WatchdogGroup& group = view.group;
  std::vector<RankId> running;
  std::vector<RankId> not_running;
  for (const WatchdogVoice& voice : group.voices) {
    if (!voice.status || !voice.status->fact->last_started) continue;
    (*voice.status->fact->last_started >= group.seq ? running : not_running).push_back(voice.rank);
  }
  // Without timing nobody ever starts: the count means something only where it moved on somebody.
  if (running.empty() || not_running.empty() || not_running.size() >= running.size()) return std::nullopt;
  Finding finding = start(group, "stuck-device", Severity::error, Confidence::medium);
  finding.ranks = RankSet(std::move(not_running));
  finding.victims = RankSet(std::move(running));
  finding.summary = fmt::format("{} enqueued seq {} of {}, but {} never started it", finding.ranks.label(4), group.seq,
                                group.label(), finding.ranks.size() == 1 ? "its device" : "their devices");
  finding.explanation =
      fmt::format("{} started the operation and {} in it; on {} the device is still busy with something before it.\n",
                  finding.victims.label(), finding.victims.size() == 1 ? "waits" : "wait", finding.ranks.label());
  finding.advice =
      finding.ranks.size() == 1 ? "Look at what runs on that device" : "Look at what runs on those devices";
  finding.advice += ": a kernel that does not end, or another group's operation.";
  tell_unseen(view, finding);
  cite_voices(view.evidence, group, finding.ranks, finding);
  return finding;
}

std::optional<Finding> lagging(const View& view) {
  const WatchdogGroup& group = view.group;
  if (group.unseen().empty()) return std::nullopt;
  std::map<std::uint64_t, std::vector<RankId>> by_enqueued;
  for (const WatchdogVoice& voice : group.voices) {
    if (const auto enqueued = voice.last_enqueued()) by_enqueued[*enqueued].push_back(voice.rank);
  }
  if (by_enqueued.size() < 2) return std::nullopt;
  const auto& [lowest, ranks] = *by_enqueued.begin();
  if (ranks.size() * 2 >= group.voices.size()) return std::nullopt;
  Finding finding = start(group, "lagging-rank", Severity::warning, Confidence::low);
  finding.ranks = RankSet(ranks);
  finding.victims = group.speakers.without(finding.ranks);
  const std::uint64_t highest = by_enqueued.rbegin()->first;
  finding.summary = fmt::format(
      "{} enqueued up to {}, others up to {}; but all who speak had enqueued seq {}, which timed "
      "out: an unseen rank may be the cause",
      finding.ranks.label(4), lowest, highest, group.seq);
  finding.explanation = fmt::format(
      "{} {} {} behind in enqueueing. But seq {} was enqueued by {} and by all others that speak, and nobody completed "
      "it, so {} not explain the time-out. A gap of this kind may be timing alone.\n",
      finding.ranks.label(), finding.ranks.size() == 1 ? "is" : "are", highest - lowest, group.seq,
      finding.ranks.size() == 1 ? "it" : "them", finding.ranks.size() == 1 ? "this rank does" : "these ranks do");
  tell_unseen(view, finding);
  finding.explanation += "The true cause may be one of those.\n";
  finding.advice = fmt::format("Get the same lines of {}: whoever has last enqueued below {} is the one.",
                               group.unseen().label(8), group.seq);
  cite_voices(view.evidence, group, finding.ranks, finding);
  return finding;
}

void tell_sizes(const WatchdogGroup& group, Finding& finding) {
  for (const WatchdogVoice& voice : group.voices) {
    const auto* timeout = voice.timeout_at(group.seq);
    const auto size = timeout != nullptr ? implied_size(*timeout->fact) : std::nullopt;
    if (!size || *size <= 1) continue;  // one rank waits for nobody: such a ratio tells nothing
    finding.explanation += fmt::format("The sizes are right for {} ranks: {} in, {} out.\n", *size,
                                       format_count(*timeout->fact->numel_in), format_count(*timeout->fact->numel_out));
    return;
  }
}

bool all_spoke(const View& view) {
  const WatchdogGroup& group = view.group;
  if (!group.unseen().empty()) return false;
  if (group.size) return group.speakers.size() >= *group.size;
  // No size is known: ranks 0..n-1 without a gap are taken for all where nobody else is heard of, a single one or a
  // stretch is not.
  if (group.voices.size() < 2 || group.speakers.values().front().value != 0) return false;
  const std::int64_t last = group.speakers.values().back().value;
  return static_cast<std::size_t>(last) + 1 == group.speakers.size() && last + 1 >= view.setting.size &&
         view.setting.heard.without(group.speakers).empty();
}

Finding stuck(const View& view) {
  const WatchdogGroup& group = view.group;
  const bool known = group.size.has_value();
  Finding finding = start(group, "stuck-in-collective", Severity::error, known ? Confidence::medium : Confidence::low);
  finding.victims = group.speakers;
  finding.summary =
      fmt::format("All {} ranks entered {} (seq {} of {}), agree on it, and it does not end: nobody is missing",
                  group.voices.size(), op_at(group), group.seq, group.label());
  finding.explanation =
      fmt::format("{} timed out in the same operation with the same type and sizes.\n", group.speakers.label());
  if (!known)
    finding.explanation += "The world size is not stated: these are all ranks up to the highest that speaks.\n";
  const bool enqueued = std::all_of(group.voices.begin(), group.voices.end(), [&group](const WatchdogVoice& voice) {
    return voice.last_enqueued().value_or(0) >= group.seq;
  });
  if (enqueued) finding.explanation += "By their status lines every one had enqueued it, and none completed it.\n";
  tell_sizes(group, finding);
  cite_voices(view.evidence, group, {}, finding);
  tell_heartbeats(view, finding);
  finding.advice =
      "Look below the collective: device errors (dmesg, Xid), link and adapter counters, the library; and take a "
      "stack of every rank. No rank is at fault by this evidence.";
  return finding;
}

Finding timed_out(const View& view) {
  const WatchdogGroup& group = view.group;
  Finding finding = start(group, "timeout", Severity::error, Confidence::low);
  finding.victims = group.speakers;
  std::string who = group.speakers.empty() ? "a process whose rank is not known" : group.speakers.label(4);
  if (who.front() >= 'a') who.front() = static_cast<char>(who.front() - 'a' + 'A');
  finding.summary = fmt::format("{} timed out in {} (seq {} of {}); whose fault it is this evidence does not show", who,
                                op_at(group), group.seq, group.label());
  finding.explanation = "Who waits is a victim, not a culprit.\n";
  tell_unseen(view, finding);
  if (group.size && group.unseen().empty() && group.speakers.size() < *group.size) {
    finding.explanation += fmt::format("The group has {} ranks, {} of them {} here.\n", *group.size,
                                       group.speakers.size(), group.speakers.size() == 1 ? "speaks" : "speak");
  }
  tell_heartbeats(view, finding);
  const RankSet unseen = group.unseen();
  finding.advice =
      fmt::format("Get the logs and recorder dumps of {}.", unseen.empty() ? "all ranks" : unseen.label(8));
  for (std::size_t i = 0; i < group.nameless.size() && i < 4; ++i) cite(finding, view.evidence, *group.nameless[i]);
  cite_voices(view.evidence, group, {}, finding);
  return finding;
}

// Ranks stopped at different operations of the group.
std::optional<Finding> apart(const View& view) {
  const WatchdogGroup& group = view.group;
  std::vector<RankId> lower;
  bool higher = false;
  for (const WatchdogVoice& voice : group.voices) {
    const auto seq = voice.failed_seq();
    if (seq && *seq < group.seq) lower.push_back(voice.rank);
    higher = higher || (seq && *seq > group.seq);
  }
  if (lower.empty() && !higher) return std::nullopt;
  // By their status lines they have not enqueued what the others wait in.
  const bool few = !group.name.empty() && !higher && lower.size() * 2 < group.voices.size();
  if (few && !behind_by_status(view).ranks.empty()) return missing(view);
  // Lines that name no group may be of several: then the numbers cannot be compared.
  if (group.name.empty() || lower.empty() || higher || lower.size() * 2 >= group.voices.size()) {
    Finding finding = timed_out(view);
    finding.explanation += "The ranks stopped at different sequence numbers, perhaps of different groups.\n";
    return finding;
  }
  Finding finding = start(group, "lagging-rank", Severity::warning, Confidence::low);
  finding.ranks = RankSet(std::move(lower));
  finding.victims = group.speakers.without(finding.ranks);
  finding.summary = fmt::format("{} stopped before seq {} of {}, where the others wait", finding.ranks.label(4),
                                group.seq, group.label());
  finding.explanation = fmt::format(
      "{} in an operation that the others count as done: {} may be behind, or the lists of operations differ earlier. "
      "A dump decides.\n",
      finding.ranks.size() == 1 ? "It waits" : "They wait", finding.ranks.size() == 1 ? "its device" : "their devices");
  tell_unseen(view, finding);
  finding.advice = finding.ranks.size() == 1 ? "Collect recorder dumps, and look at that rank's device."
                                             : "Collect recorder dumps, and look at those ranks' devices.";
  cite_voices(view.evidence, group, finding.ranks, finding);
  return finding;
}

// ---- time-outs themselves -------------------------------------------------------------------------------------------

std::optional<Finding> unlike_limits(const Evidence& evidence, const WatchdogGroup& group) {
  Classes classes;
  for (const WatchdogVoice& voice : group.voices) {
    const auto* timeout = voice.timeout_at(group.seq);
    if (timeout != nullptr && timeout->fact->timeout)
      classes[format_duration(*timeout->fact->timeout)].push_back(voice.rank);
  }
  if (classes.size() < 2) return std::nullopt;
  Finding finding = start(group, "timeout-short", Severity::warning, Confidence::medium);
  finding.ranks = minority(classes);
  finding.summary = fmt::format("The time-out is not the same on all ranks: {}", describe(classes, ""));
  finding.explanation =
      "The ranks with the shorter limit give up first and take the job down, however long the others "
      "would have waited.\n";
  finding.advice = "Pass the same timeout to init_process_group and new_group on all ranks.";
  cite_voices(evidence, group, finding.ranks, finding);
  return finding;
}

void tell_short_limit(const WatchdogGroup& group, Finding& finding) {
  const auto* timeout = group.voices.empty() ? nullptr : group.voices.front().timeout_at(group.seq);
  if (timeout == nullptr || !timeout->fact->timeout || *timeout->fact->timeout > kShortTimeout) return;
  finding.explanation += fmt::format("The limit is only {}: a first step, a compile or a checkpoint can take longer.\n",
                                     format_duration(*timeout->fact->timeout));
}

// ---- the whole ------------------------------------------------------------------------------------------------------

using Dumps = std::multimap<RankId, const RankRecord*>;

// Whether dumps hold this operation for `rank`: then they say more than its log.
bool in_dump(const Evidence& evidence, const Dumps& dumps, RankId rank, const WatchdogGroup& group) {
  const auto [begin, end] = dumps.equal_range(rank);
  for (auto at = begin; at != end; ++at) {
    const RankRecord& record = *at->second;
    const Program& program = evidence.trace.program(record);
    for (std::size_t row = 0; row < program.size(); ++row) {
      const auto seq = program.seq(row);
      const auto slot = program.comm_slot(row);
      if (!seq || *seq != group.seq) continue;
      if (group.name.empty() || !slot || *slot >= record.comms.size()) return true;
      const Communicator& comm = evidence.trace.communicator(record.comms[*slot]);
      const std::string_view name = evidence.trace.text(comm.name);
      if (name == group.name || is_default_group(name) == is_default_group(group.name)) return true;
    }
  }
  return false;
}

std::optional<Finding> judge_group(const View& view, const Dumps& dumps, bool explained) {
  const WatchdogGroup& group = view.group;
  std::size_t dumped = 0;
  for (const WatchdogVoice& voice : group.voices) {
    if (!dumps.empty() && in_dump(view.evidence, dumps, voice.rank, group)) ++dumped;
  }
  if (dumped > 0 && dumped == group.voices.size()) return std::nullopt;
  if (auto finding = type_mismatch(view)) return finding;
  if (auto finding = size_mismatch(view)) return finding;
  if (auto finding = wrong_ratio(view.evidence, group)) return finding;
  if (dumped > 0 || explained) return std::nullopt;
  if (auto finding = apart(view)) return finding;
  if (auto finding = missing(view)) return finding;
  if (auto finding = not_started(view)) return finding;
  if (auto finding = lagging(view)) return finding;
  Finding finding = all_spoke(view) && group.nameless.empty() ? stuck(view) : timed_out(view);
  tell_short_limit(group, finding);
  return finding;
}

// Whether a process ended by itself in this attempt: then the others' time-outs are its consequences.
bool ended(const std::vector<Finding>& ends, std::uint32_t attempt) {
  const std::string own = fmt::format("attempt {}", attempt);
  return std::any_of(ends.begin(), ends.end(), [&own](const Finding& finding) {
    if (finding.code != "dead-rank") return false;
    bool other = false;  // a finding without an attempt is of the last one
    for (const std::string& subject : finding.subjects)
      other = other || (subject.starts_with("attempt ") && subject != own);
    return !other;
  });
}

std::optional<Finding> heartbeat_alone(const Evidence& evidence) {
  const auto stuck_lines = seen<HeartbeatStuck>(evidence);
  if (stuck_lines.empty()) return std::nullopt;
  Finding finding;
  finding.code = "timeout";
  finding.confidence = Confidence::low;
  std::vector<RankId> ranks;
  for (const auto& [event, fact] : stuck_lines) {
    if (event->rank) ranks.push_back(*event->rank);
    cite(finding, evidence, *event);
  }
  finding.victims = RankSet(std::move(ranks));
  finding.summary =
      fmt::format("The watchdog thread{} of {} made no progress for {}", finding.victims.size() > 1 ? "s" : "",
                  finding.victims.empty() ? std::string("a process") : finding.victims.label(4),
                  format_duration(stuck_lines.front().fact->stuck_for));
  finding.explanation =
      "The watchdog itself hung, in a call to the device's driver or waiting for Python's lock. It does not "
      "say what the job waits for.\n";
  finding.advice =
      "Take stacks of all threads of that process (gdb or py-spy dump --native), and look for device errors.";
  return finding;
}

}  // namespace

std::vector<Finding> judge_watchdog(const Evidence& evidence) {
  const WatchdogLog log = watchdog_log(evidence);
  std::vector<Finding> findings;
  const std::vector<Finding> ends = judge_process_ends(evidence);
  if (log.groups.empty() && ends.empty()) {
    if (auto finding = heartbeat_alone(evidence)) findings.push_back(std::move(*finding));
  }
  Dumps dumps;
  for (const RankRecord& record : evidence.trace.ranks) {
    if (record.snapshot && record.rank) dumps.emplace(*record.rank, &record);
  }
  const auto heartbeats = seen<HeartbeatStuck>(evidence);
  for (const WatchdogGroup& group : log.groups) {
    if (group.voices.empty() && group.nameless.empty()) continue;
    const View view{evidence, group, log.attempts.at(group.attempt), heartbeats};
    if (auto finding = judge_group(view, dumps, ended(ends, group.attempt))) {
      // A job that timed out has failed, whoever may be behind.
      const bool mild = finding->severity != Severity::error && !log.attempts.at(group.attempt).waiting.empty();
      findings.push_back(std::move(*finding));
      if (mild) findings.push_back(timed_out(view));
    }
    if (auto finding = unlike_limits(evidence, group)) findings.push_back(std::move(*finding));
  }
  // Where one group's finding names somebody, the bare time-outs of the others are its consequences.
  const bool named = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity == Severity::error && !finding.ranks.empty();
  });
  if (named)
    std::erase_if(findings, [](const Finding& f) { return f.code == "timeout" || f.code == "stuck-in-collective"; });
  return findings;
}

}  // namespace ddx::analyzers
