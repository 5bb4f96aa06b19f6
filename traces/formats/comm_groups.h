// The groups of Chakra traces, in a JSON file of its own beside them: {"1": [0, 1, 2, 3], "2": [4, 5, 6, 7]}, the name
// of a group (pg_name, a whole number) and its members, global ranks in the order of their positions. ASTRA-sim takes
// such a file as --comm-group-configuration (astra-sim/astra-sim:inputs/comm_group/comm_group_sample.json; read by
// Workload::initialize_comm_groups); STAGE writes it as NAME.json beside NAME.RANK.et.
#pragma once

#include "traces/formats/importer.h"

namespace ddx::formats {

// Fills Evidence::group_lists. A member that can be no rank, a member twice and a group twice are counted as errors:
// "comm_groups.bad_member", "comm_groups.group_twice".
Importer comm_groups_importer();

// Lists the groups that Chakra nodes name and do not describe. Counted, as what makes a run worthless: a group that is
// in no list ("comm_groups.unknown_group"), a rank that calls in a group of others ("comm_groups.no_member"), members
// beyond the stated world ("comm_groups.bad_member"), two files that do not agree ("comm_groups.disagree"). Lists with
// no trace to use them are "comm_groups.no_traces". Call it once all files are read.
void list_stated_groups(Evidence& evidence);

}  // namespace ddx::formats
