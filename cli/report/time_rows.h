// Where the time of measured ranks went (analyzers/breakdown), for `ddx info`.
#pragma once

#include <vector>

#include "analyzers/breakdown/breakdown.h"
#include "cli/report/json_text.h"
#include "cli/report/text_layout.h"

namespace ddx::cli {

// A table, a rank a line; of many ranks those with the longest spans, unless `all`.
void show_times(Page& page, const std::vector<analyzers::RankTime>& times, bool all);

// span_ns = compute_ns + communication_ns + bubble_ns + idle_ns + unattributed_ns, of each rank and each of its
// streams; overlapped_ns is the part of compute_ns in which there was communication as well.
Json times_json(const std::vector<analyzers::RankTime>& times);

}  // namespace ddx::cli
