// RecordChoice: which records are judged together. A folder may hold dumps of several backends, and of several attempts
// of one job; sequence numbers of different ones do not compare.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/model/evidence.h"

namespace ddx::analyzers {

// Dumps and call logs of one job number and name their groups differently, so each kind is judged by itself.
enum class RecordKind { dumps, logs };

struct RecordChoice {
  RecordKind kind = RecordKind::dumps;
  std::optional<std::string> backend;  // only records of this one, and those of ranks that have none of it but do not
                                       // say theirs; absent: all
  std::vector<bool> outdated;          // by index into Trace::ranks: of an earlier attempt; empty: none
};

// Whether the record is of a recorder or program (dumps) or made from the lines of a log.
RecordKind kind_of(const RankRecord& record);

// The attempt of the job that it is of: as it says, else by a folder "attempt_N" of its path.
std::optional<std::uint32_t> attempt_of(const Evidence& evidence, const RankRecord& record);

// One choice for each kind and, where ranks have dumps of several backends, for each backend; those without any record
// are left out. Dumps that lie in a folder "attempt_N" or say their attempt are outdated unless it is the last one.
std::vector<RecordChoice> record_choices(const Evidence& evidence);

}  // namespace ddx::analyzers
