#include "base/rank_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

namespace ddx {
namespace {

std::optional<std::int32_t> parse_rank(std::string_view text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

RankSet::RankSet(std::vector<RankId> ranks) : ranks_(std::move(ranks)) {
  std::sort(ranks_.begin(), ranks_.end());
  ranks_.erase(std::unique(ranks_.begin(), ranks_.end()), ranks_.end());
}

RankSet RankSet::range(RankId first, RankId last) {
  RankSet set;
  for (std::int64_t r = first.value; r <= last.value; ++r) set.ranks_.emplace_back(r);
  return set;
}

void RankSet::insert(RankId rank) {
  const auto at = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
  if (at == ranks_.end() || *at != rank) ranks_.insert(at, rank);
}

void RankSet::insert(const RankSet& others) {
  std::vector<RankId> all;
  all.reserve(ranks_.size() + others.ranks_.size());
  std::set_union(ranks_.begin(), ranks_.end(), others.ranks_.begin(), others.ranks_.end(), std::back_inserter(all));
  ranks_ = std::move(all);
}

void RankSet::erase(RankId rank) {
  const auto at = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
  if (at != ranks_.end() && *at == rank) ranks_.erase(at);
}

bool RankSet::contains(RankId rank) const { return std::binary_search(ranks_.begin(), ranks_.end(), rank); }

RankSet RankSet::without(const RankSet& others) const {
  RankSet rest;
  std::set_difference(ranks_.begin(), ranks_.end(), others.ranks_.begin(), others.ranks_.end(),
                      std::back_inserter(rest.ranks_));
  return rest;
}

RankSet RankSet::common(const RankSet& others) const {
  RankSet both;
  std::set_intersection(ranks_.begin(), ranks_.end(), others.ranks_.begin(), others.ranks_.end(),
                        std::back_inserter(both.ranks_));
  return both;
}

std::string RankSet::text(std::size_t max_ranges) const {
  if (ranks_.empty()) return "none";
  std::string out;
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < ranks_.size(); ++ranges) {
    if (ranges == max_ranges) return out + fmt::format(",... ({} ranks)", ranks_.size());
    std::size_t last = i;
    while (last + 1 < ranks_.size() && ranks_[last + 1].value == ranks_[last].value + 1) ++last;
    if (!out.empty()) out += ',';
    out += std::to_string(ranks_[i].value);
    // Two neighbours read better as "0,1" than as "0-1".
    if (last == i + 1) out += fmt::format(",{}", ranks_[last].value);
    if (last > i + 1) out += fmt::format("-{}", ranks_[last].value);
    i = last + 1;
  }
  return out;
}

std::string RankSet::label(std::size_t max_ranges) const {
  return (ranks_.size() == 1 ? "rank " : "ranks ") + text(max_ranges);
}

std::optional<RankSet> RankSet::parse(std::string_view text, std::size_t max_ranks) {
  std::vector<RankId> ranks;
  while (true) {
    const auto comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const auto dash = part.find('-', 1);
    const auto first = parse_rank(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_rank(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    const auto wanted = static_cast<std::uint64_t>(std::int64_t{*last} - *first) + 1;
    if (ranks.size() + wanted > max_ranks) return std::nullopt;
    for (std::int64_t r = *first; r <= *last; ++r) ranks.emplace_back(r);
    if (comma == std::string_view::npos) return RankSet(std::move(ranks));
    text.remove_prefix(comma + 1);
  }
}

}  // namespace ddx
