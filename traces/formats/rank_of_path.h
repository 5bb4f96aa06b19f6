// What the name of one file or folder says of a rank, for readers that trust less than rank_of_path does.
#pragma once

#include <optional>
#include <string_view>

#include "base/ids.h"

namespace ddx::formats {

// The last number behind the word "rank" in one part of a path. Not a rank that counts something smaller than the job
// ("local_rank_3"), nor one of a matrix ("lora_rank16").
std::optional<RankId> stated_rank(std::string_view part);

}  // namespace ddx::formats
