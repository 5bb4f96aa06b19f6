#include "sim/replay/flat_costs.h"

#include <fmt/format.h>

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

  std::optional<Cost> collective(const Communicator& communicator, const Work& work) const override {
    const auto ranks = communicator.members.empty() ? communicator.declared_size.value_or(0)
                                                    : static_cast<std::uint32_t>(communicator.members.size());
    if (ranks == 0) return std::nullopt;
    Work priced = work;
    // Making groups is a meeting of all, no more.
    if (work.kind == OpKind::new_group || work.kind == OpKind::split_group) priced.kind = OpKind::barrier;
    const Members members = flat_members(ranks);
    const Algorithm* algorithm = options_.algorithm;
    if (algorithm == nullptr || !algorithm->runs(priced.kind, members)) {
      algorithm = choose_algorithm(priced, ranks, options_.library);
    }
    if (algorithm == nullptr) return std::nullopt;
    return Cost{flat_price(priced, ranks, options_.port, *algorithm), {{kOut, 1000}, {kIn, 1000}}, {}};
  }

  std::optional<Cost> transfer(RankId from, RankId to, std::uint64_t bytes) const override {
    if (from == to) return Cost{};
    Price price;
    price.latency = options_.port.latency;
    price.transfer = transfer_time(bytes, options_.port.bytes_per_second);
    return Cost{price, {{kOut, 1000}}, {{kIn, 1000}}};
  }

  std::vector<std::uint32_t> resources(RankId rank) const override {
    const auto number = static_cast<std::uint32_t>(rank.value);
    return {2 * number + kOut, 2 * number + kIn};
  }

 private:
  FlatOptions options_;
};

}  // namespace

std::unique_ptr<CostModel> flat_costs(const FlatOptions& options) { return std::make_unique<FlatCosts>(options); }

}  // namespace ddx::sim
