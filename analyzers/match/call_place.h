#pragma once

#include <cstdint>

namespace ddx::analyzers {

// One collective of one group.
struct CallPlace {
  std::uint32_t group = 0;  // index into JobView::groups
  std::uint32_t seq = 0;
  auto operator<=>(const CallPlace&) const = default;
};

}  // namespace ddx::analyzers
