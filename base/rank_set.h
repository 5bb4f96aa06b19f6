// RankSet: an ordered set of ranks that prints as ranges, so that 4,096 ranks stay readable.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace ddx {

class RankSet {
 public:
  RankSet() = default;
  RankSet(std::initializer_list<RankId> ranks) {
    for (RankId rank : ranks) insert(rank);
  }
  explicit RankSet(std::vector<RankId> ranks);

  // Ranks first..last, both included.
  static RankSet range(RankId first, RankId last);

  void insert(RankId rank);
  void insert(const RankSet& others);
  void erase(RankId rank);
  bool contains(RankId rank) const;
  bool empty() const { return ranks_.empty(); }
  std::size_t size() const { return ranks_.size(); }
  const std::vector<RankId>& values() const { return ranks_; }  // ascending, unique
  auto begin() const { return ranks_.begin(); }
  auto end() const { return ranks_.end(); }
  bool operator==(const RankSet&) const = default;

  RankSet without(const RankSet& others) const;
  RankSet common(const RankSet& others) const;

  // "0-6,8-15"; at most `max_ranges` ranges, then ",... (N ranks)". Empty set: "none".
  std::string text(std::size_t max_ranges = 16) const;
  // "rank 3" or "ranks 0-6,8-15".
  std::string label(std::size_t max_ranges = 16) const;

  // Reads "0-6,8,10-12"; nullopt where the text is no such list or holds more than `max_ranks` ranks.
  static std::optional<RankSet> parse(std::string_view text, std::size_t max_ranks = 4'000'000);

 private:
  std::vector<RankId> ranks_;
};

}  // namespace ddx
