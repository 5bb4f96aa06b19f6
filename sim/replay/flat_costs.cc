#include "sim/replay/flat_costs.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/collectives/port_bound.h"

namespace ddx::sim {
namespace {

// Kinds of resource.
constexpr std::uint16_t kOut = 0;
constexpr std::uint16_t kIn = 1;

class FlatCosts final : public CostModel {
 public:
  explicit FlatCosts(const FlatOptions& options) : options_(options) {}

  std::string name() const override {
    std::string text = fmt::format("a flat network of {:g} GB/s and {:g} us",
                                   static_cast<double>(options_.port.bytes_per_second) / 1e9,
                                   static_cast<double>(options_.port.latency) / 1e6);
    if (options_.algorithm != nullptr) text += fmt::format(", algorithm {}", options_.algorithm->name);
    return text;
  }

  std::uint64_t mark(const Communicator&) const override { return 0; }
  std::uint64_t mark(RankId, RankId) const override { return 0; }

  std::vector<std::uint32_t> resources(RankId rank) const override {
    const auto number = static_cast<std::uint32_t>(rank.value);
    return {2 * number + kOut, 2 * number + kIn};
  }

 protected:
  std::optional<Cost> cost_of(const Communicator& communicator, const Work& work) const override {
    const std::uint32_t ranks = communicator.size();
    if (ranks == 0) return std::nullopt;
    const Work priced = priced_as(work);
    const Algorithm* algorithm = algorithm_for(priced, ranks, options_.library, options_.algorithm);
    if (algorithm == nullptr) return std::nullopt;
    const Price price = flat_price(priced, ranks, options_.port, *algorithm);
    if (is_rooted(priced.kind)) return rooted(priced, ranks, price);
    return Cost{price, {{kOut, kWholeResource}, {kIn, kWholeResource}}, {}, {}};
  }

  std::optional<Cost> cost_of(RankId from, RankId to, std::uint64_t bytes) const override {
    if (from == to) return Cost{};
    Price price;
    price.latency = options_.port.latency;
    price.transfer = transfer_time(bytes, options_.port.bytes_per_second);
    price.rounding = 1;
    return Cost{price, {{kOut, kWholeResource}}, {{kIn, kWholeResource}}, {}};
  }

  Picos bound(std::span<const RankId> members, const Work& work, const Price& price) const override {
    const Algorithm* algorithm = find_algorithm(price.algorithm);
    const auto ranks = static_cast<std::uint32_t>(members.size());
    return algorithm != nullptr ? port_bound(work, ranks, options_.port.bytes_per_second, *algorithm)
                                : port_bound(work, ranks, options_.port.bytes_per_second);
  }

 private:
  // Of a chain, everybody takes it once and passes it on once, but for the root and the last one. Else the root's port
  // is busy in one direction all the time; the others take (or give) their part once, and pass on what the root does
  // not send to all itself: the mean of them, for which place in a tree a rank has is not looked at.
  Cost rooted(const Work& work, std::uint32_t ranks, const Price& price) const {
    const bool from_root = work.kind == OpKind::broadcast || work.kind == OpKind::scatter;
    const bool whole = work.kind == OpKind::broadcast || work.kind == OpKind::reduce;
    const auto rate = static_cast<double>(options_.port.bytes_per_second);
    const double others = std::max(1U, ranks - 1);
    const double part = static_cast<double>(work.bytes) / (whole ? 1 : ranks);
    const double by_root = static_cast<double>(price.transfer) / static_cast<double>(kPicosPerSecond) * rate;
    const double passed_on = std::max(0., part - by_root / others);
    const std::uint16_t with = from_root ? kIn : kOut, against = from_root ? kOut : kIn;
    if (price.algorithm == "ring") {
      const ResourceUse takes = use_of(with, part, price.transfer, rate), gives{against, takes.part};
      return Cost{price, {takes, gives}, {}, std::vector{gives}, std::vector{takes}};
    }
    return Cost{price,
                {use_of(with, part, price.transfer, rate), use_of(against, passed_on, price.transfer, rate)},
                {},
                std::vector<ResourceUse>{{against, kWholeResource}}};
  }

  FlatOptions options_;
};

}  // namespace

Work priced_as(const Work& work) {
  Work priced = work;
  if (work.kind == OpKind::new_group || work.kind == OpKind::split_group) priced.kind = OpKind::barrier;
  return priced;
}

const Algorithm* algorithm_for(const Work& work, std::uint32_t ranks, Library library, const Algorithm* forced) {
  if (forced != nullptr && forced->runs(work.kind, flat_members(ranks))) return forced;
  return choose_algorithm(work, ranks, library);
}

std::unique_ptr<CostModel> flat_costs(const FlatOptions& options) { return std::make_unique<FlatCosts>(options); }

}  // namespace ddx::sim
