// WatchdogGroup: what PyTorch's watchdog lines of one process group say, rank by rank.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/log_view.h"
#include "base/finding.h"
#include "traces/model/evidence.h"

namespace ddx::analyzers {

struct WatchdogVoice {
  RankId rank;
  std::vector<Seen<WatchdogTimeout>> timeouts;  // by sequence number, one for each
  std::optional<Seen<WatchdogStatus>> status;   // the last one

  // The first operation that this rank could not finish.
  std::optional<std::uint64_t> failed_seq() const;
  // Its time-out line about `seq`.
  const Seen<WatchdogTimeout>* timeout_at(std::uint64_t seq) const;
  std::optional<std::uint64_t> last_enqueued() const;
  const LogEvent& event() const { return timeouts.empty() ? *status->event : *timeouts.front().event; }
};

struct WatchdogGroup {
  std::string name;  // as the lines say; empty: not said
  std::uint32_t attempt = 0;
  std::vector<WatchdogVoice> voices;      // by rank
  std::vector<const LogEvent*> nameless;  // time-outs of ranks that are not known
  RankSet speakers;
  RankSet members;                    // as far as known; holds the speakers
  std::optional<std::uint64_t> size;  // of the group: stated, or implied by the operation's sizes
  bool size_stated = false;           // by the evidence itself, not implied
  bool members_assumed = false;       // the members are 0..n-1 because the numbering suggests it
  std::uint64_t seq = 0;              // the operation most ranks failed at; the lowest when equal

  RankSet unseen() const { return members.without(speakers); }
  std::string label() const { return name.empty() ? "the group" : "group " + name; }
};

// What the groups of one attempt are judged against: who spoke of anything at all, who waits, who lost a peer.
struct WatchdogSetting {
  RankSet heard;          // ranks with lines, files or INIT entries of their own
  RankSet waiting;        // timed out in some group
  RankSet lost_a_peer;    // fell before their own time-out could come: they waited as well
  std::int64_t size = 0;  // the job has at least so many ranks, as a communicator or a RAS table says; 0: none does
};

struct WatchdogLog {
  std::vector<WatchdogGroup> groups;
  std::map<std::uint32_t, WatchdogSetting> attempts;  // of each group's attempt
};
WatchdogLog watchdog_log(const Evidence& evidence);

// What of a time-out line must be equal on all ranks, as text; nullopt: sizes may differ, or are not recorded.
std::optional<std::string> comparable_size(const WatchdogTimeout& timeout);
// The group size that in and out imply (all_gather, reduce_scatter): nullopt where the operation implies none; 0 where
// one is not a multiple of the other.
std::optional<std::uint64_t> implied_size(const WatchdogTimeout& timeout);

}  // namespace ddx::analyzers
