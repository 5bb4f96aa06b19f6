// Whether evidence allows the answer "nothing is wrong".
#pragma once

#include <string>
#include <vector>

#include "base/finding.h"
#include "traces/model/evidence.h"

namespace ddx::cli {

// Why "nothing is wrong" may not be concluded from `evidence`, as half a sentence; empty where it may, or where the
// findings conclude something themselves. Nothing follows from files that could not be used, from what only describes
// the job or shows that it ran once, from the records of a minority of the ranks, or from records that are cut.
std::string why_insufficient(const Evidence& evidence, const std::vector<Finding>& findings);

// Parts of it that commands ask which make no report; half a sentence, empty: nothing.
// What of the files was cut or given up, so that what was read is not all that they held.
std::string why_broken(const Evidence& evidence);
// Where no operation and no event is in the evidence: what is the matter with its files.
std::string why_nothing(const Evidence& evidence);

// The members of the world and of the groups, as far as the evidence states them.
RankSet ranks_expected(const Trace& trace);

}  // namespace ddx::cli
