#include "traces/formats/member_positions.h"

#include <algorithm>

namespace ddx::formats {

std::optional<std::uint32_t> MemberPositions::find(CommId comm, std::int64_t rank) {
  if (index_.size() <= comm.value) index_.resize(trace_.communicators().size());
  Index& index = index_[comm.value];
  const auto& members = trace_.communicator(comm).members;
  if (!index.known) {
    index.known = true;
    for (std::size_t i = 0; i < members.size() && index.identity; ++i) {
      index.identity = members[i].value == static_cast<std::int32_t>(i);
    }
    for (std::size_t i = 0; i < members.size() && !index.identity; ++i) {
      index.by_rank.emplace_back(members[i].value, static_cast<std::uint32_t>(i));
    }
    std::sort(index.by_rank.begin(), index.by_rank.end());
  }
  if (index.identity) {
    return rank >= 0 && rank < static_cast<std::int64_t>(members.size())
               ? std::optional(static_cast<std::uint32_t>(rank))
               : std::nullopt;
  }
  const auto at = std::lower_bound(index.by_rank.begin(), index.by_rank.end(), std::pair(rank, 0U),
                                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (at == index.by_rank.end() || at->first != rank) return std::nullopt;
  return at->second;
}

}  // namespace ddx::formats
