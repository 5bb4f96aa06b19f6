// What names of files and folders say of a rank: the steps of rank_of_path, for who trusts less than that does.
#pragma once

#include <optional>
#include <regex>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace ddx::formats {

// The last number behind the word "rank" in one part of a path. Not a rank that counts something smaller than the job
// ("local_rank_3"), nor one of a matrix ("lora_rank16").
std::optional<RankId> stated_rank(std::string_view part);

// The rank in the first group of `pattern`, where that is found in `path`.
std::optional<RankId> rank_by_pattern(const std::string& path, const std::regex& pattern);

}  // namespace ddx::formats
