// Positions of ranks in communicators.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "traces/model/trace.h"

namespace ddx::formats {

// Sorts a member list for search on first use. The trace's communicators may grow meanwhile; it must outlive this.
class MemberPositions {
 public:
  explicit MemberPositions(const Trace& trace) : trace_(trace) {}
  // nullopt: no member, or the members are not listed.
  std::optional<std::uint32_t> find(CommId comm, std::int64_t rank);

 private:
  struct Index {
    bool known = false;
    bool identity = true;
    std::vector<std::pair<std::int32_t, std::uint32_t>> by_rank;
  };
  const Trace& trace_;
  std::vector<Index> index_;
};

}  // namespace ddx::formats
