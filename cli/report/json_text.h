// JSON as people and tools read it: two blanks a level, but a list of numbers or strings on one line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/rank_set.h"

namespace ddx::cli {

using Json = nlohmann::ordered_json;

// ASCII alone, so that a terminal shows it as it is: all else is written \uXXXX. Ends with a line break. Bytes that are
// no UTF-8 are replaced; throws nothing on them.
std::string json_text(const Json& value);
Json rank_list(const RankSet& ranks);

}  // namespace ddx::cli
