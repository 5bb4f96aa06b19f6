// What reporters ask about the findings of a report together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/finding.h"
#include "cli/report/report.h"

namespace ddx::cli {

// Who is held at fault by whom: the culprit of one finding is nobody's mere victim.
class Blame {
 public:
  explicit Blame(const std::vector<Finding>& findings);
  // The finding's victims but for the culprits of findings that are as grave.
  RankSet waiting(const Finding& finding) const;

 private:
  std::array<RankSet, 3> culprits_;  // by severity, or above it
};

// The findings by place in `findings`: first of each set, then those that say the same of other groups, ranks or
// numbers (of one code, severity and confidence). Sets are in order of their first.
std::vector<std::vector<std::size_t>> alike(const std::vector<Finding>& findings);

// Where a finding points to.
struct FindingPlace {
  std::string path;  // empty: nowhere
  std::optional<std::uint64_t> line;
  std::string text;  // what was seen there
};
// The first call site that its evidence names, else the first piece of evidence in a file, else the first input.
FindingPlace place_of(const Finding& finding, const Report& report);

// Of the loader: a file without a byte.
bool is_empty_file(const ReportInput& input);
// Such a file by the name of a recorder's dump ("nccl_trace_rank_3", "rank_3.json"): something is lost there, while
// the log of a process that printed nothing is as it should be.
bool is_empty_dump(const ReportInput& input);
// A launch script, a table of environments: no record of what ranks did.
bool describes_launch(const ReportInput& input);

// Data was lost or something failed: what every format tells.
bool is_loud(const Diagnostic& diagnostic);

}  // namespace ddx::cli
