// Numbers with their words, for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/units.h"

namespace ddx {

// counted(1, "rank", "ranks") -> "1 rank", counted(4096, ...) -> "4,096 ranks".
inline std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return format_count(count).append(1, ' ').append(count == 1 ? one : many);
}

}  // namespace ddx
