// Finding: a conclusion with its evidence. Codes are listed in docs/findings.md; a code never changes its meaning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rank_set.h"

namespace ddx {

enum class Severity { info, warning, error };
enum class Confidence { low, medium, high };

// One thing that was seen: a line of a log, an entry of a dump, a call site.
struct EvidenceLine {
  std::string path;
  std::optional<std::uint64_t> line;
  std::string text;
};

struct Finding {
  std::string code;
  Severity severity = Severity::error;
  Confidence confidence = Confidence::medium;
  RankSet ranks;                      // the culprits; empty: nobody is named
  RankSet victims;                    // those who merely wait on them
  std::vector<std::string> subjects;  // "group pg0", "seq 812", "host node-a"
  std::string summary;                // one line, says what happened and to whom
  std::string explanation;            // what was seen and why it follows; lines end in \n
  std::vector<EvidenceLine> evidence;
  std::string advice;
  // For who settles which of several findings speaks: it may itself follow from what others say of these ranks.
  bool may_be_consequence = false;
};

std::string_view name_of(Severity severity);      // "info" "warning" "error"
std::string_view name_of(Confidence confidence);  // "low" "medium" "high"

}  // namespace ddx
