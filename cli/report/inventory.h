// Inventory: what is in an Evidence, counted. Plain data; nothing here is a conclusion.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/breakdown/breakdown.h"
#include "cli/report/report.h"
#include "traces/model/evidence.h"

namespace ddx::cli {

struct FormatCount {
  std::uint64_t files = 0;
  RankSet ranks;
};

// First and last sequence number that a recorder still holds.
using SeqRange = std::pair<std::uint32_t, std::uint32_t>;

struct GroupInventory {
  std::string name;
  std::string description;
  RankSet members;                                  // empty: not recorded
  std::optional<std::uint64_t> size;                // of the member list, or as declared
  RankSet seen;                                     // members with a record of their own
  std::map<std::string, std::uint64_t> operations;  // kind -> calls, over all records
  std::map<std::string, std::uint64_t> states;      // state -> calls, over all records
  std::map<SeqRange, RankSet> sequences;            // of collectives; ranks by the range they hold
  std::uint64_t records = 0;                        // records that use it, those without a rank too
};

struct EventCount {
  std::uint64_t count = 0;
  RankSet ranks;  // of those whose writer is known
};

struct Inventory {
  Report report;  // inputs, ranks and diagnostics
  std::map<std::string, FormatCount> formats;
  std::map<std::string, RankSet> hosts;
  std::map<std::string, RankSet> backends;
  std::map<std::string, RankSet> versions;  // of the communication library
  std::uint64_t records = 0;
  std::uint64_t records_without_rank = 0;
  RankSet claimed_twice;  // ranks with more than one record
  RankSet head_lost;      // rings that overran: earlier entries are gone
  RankSet tail_lost;      // files that were cut
  std::uint64_t operations = 0;
  std::vector<GroupInventory> groups;  // by name, then members
  std::map<std::string, EventCount> events;
  std::vector<analyzers::RankTime> times;  // of records with times
};

Inventory take_inventory(const Evidence& evidence);

// The name of a log event's kind: "watchdog_timeout".
std::string_view kind_of(const LogFact& fact);

std::string render_info_text(const Inventory& inventory, std::size_t width, bool color, bool quiet, bool verbose);
std::string render_info_json(const Inventory& inventory);

}  // namespace ddx::cli
