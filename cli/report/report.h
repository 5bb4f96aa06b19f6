// Report: the finished answer of a command as plain data. Reporters print it and judge nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/finding.h"
#include "base/rank_set.h"
#include "base/units.h"
#include "traces/model/evidence.h"

namespace ddx::cli {

enum class Verdict { clean, inconclusive, warning, error };

struct ReportInput {
  std::string path;
  std::string format;
  RankSet ranks;
  std::string note;  // why it was skipped or read in part; empty: whole
  bool unreadable = false;
};

// What a run of programs came to, beside its findings.
struct Simulation {
  std::string outcome;  // "completes", "deadlock", "mismatch", "refused"
  std::uint64_t ranks = 0;
  std::uint64_t rank_ops = 0;
  std::uint32_t classes = 0;         // of ranks that behave alike
  std::vector<std::string> assumed;  // one sentence each
  std::string timed_by;              // what gave the times; empty: there are none
  std::string untimed;               // why there are none although they were asked for
  std::optional<Nanos> predicted;
  // Of ranks with the same ones (sim::TimeShares). What stands between `end` and `waiting` sums to `predicted`.
  struct Totals {
    RankSet ranks;
    Nanos end = 0;  // of its last operation
    Nanos compute = 0;
    Nanos communication = 0;
    Nanos bubble = 0;
    Nanos idle = 0;
    Nanos unattributed = 0;
    Nanos waiting = 0;     // of `communication`
    Nanos overlapped = 0;  // of `compute`: in a call as well
  };
  std::vector<Totals> totals;
  // What collectives of a kind and a number of ranks take on the network, as the library's documents write it.
  struct Choice {
    std::string kind;
    std::uint32_t ranks = 0;
    std::uint64_t least_bytes = 0;
    std::uint64_t most_bytes = 0;
    std::string algorithm;
    std::string protocol;  // empty: the algorithm has none
  };
  std::vector<Choice> choices;
};

struct Report {
  std::string command;
  Verdict verdict = Verdict::clean;
  bool sufficient = true;  // false: the evidence does not allow to say that nothing is wrong
  std::string reason;      // why not, as half a sentence; empty where `sufficient`
  std::vector<ReportInput> inputs;
  std::optional<std::uint32_t> world_size;  // as stated by the evidence
  RankSet ranks_seen;                       // those with any evidence of their own
  RankSet ranks_absent;                     // members of the world or of a group without any
  std::size_t unnumbered = 0;               // records of no known rank: they may be those of `ranks_absent`
  std::vector<Finding> findings;            // errors first, causes before consequences
  std::vector<Diagnostic> diagnostics;      // by name
  std::optional<Simulation> simulation;     // of `ddx sim`
  std::string rows_read;                    // of a table: "5 rows"; empty: the evidence is of ranks
};

Report make_report(std::string command, const Evidence& evidence, std::vector<Finding> findings);

// Whether a finding is at or above `threshold`; never where that is absent.
bool fails(const Report& report, std::optional<Severity> threshold);

std::string_view name_of(Verdict verdict);  // "clean" "inconclusive" "warning" "error"

}  // namespace ddx::cli
