#include "sim/replay/step_costs.h"

#include <utility>

#include "base/error.h"
#include "sim/replay/cluster_costs.h"
#include "sim/replay/flat_costs.h"

namespace ddx::sim {
namespace {

class StepCosts final : public CostModel {
 public:
  StepCosts(const Cluster& cluster, const Algorithm* algorithm)
      : cluster_(cluster), algorithm_(algorithm), single_(cluster_costs(cluster, nullptr)) {}

  std::string name() const override {
    std::string text = single_->name() + ", step by step";
    if (algorithm_ != nullptr) text += ", algorithm " + std::string(algorithm_->name);
    return text;
  }
  std::uint64_t mark(const Communicator& communicator) const override { return single_->mark(communicator); }
  std::uint64_t mark(RankId from, RankId to) const override { return single_->mark(from, to); }
  std::vector<std::uint32_t> resources(RankId) const override { return {}; }
  bool by_steps() const override { return true; }
  std::optional<Network> network(std::uint32_t ranks) const override {
    return cluster_.flat ? Network(ranks, cluster_.network) : Network(cluster_);
  }
  std::optional<StepWork> steps(const Communicator& communicator, const Work& work) const override {
    return steps_of(communicator.members, work);
  }
  std::optional<StepWork> steps(RankId from, RankId to, std::uint64_t bytes) const override {
    return steps_of({from, to}, {OpKind::send, bytes, DataType::unknown, RedOp::unknown});
  }

 protected:
  std::optional<Cost> cost_of(const Communicator&, const Work&) const override { return std::nullopt; }
  std::optional<Cost> cost_of(RankId from, RankId to, std::uint64_t bytes) const override {
    return single_->transfer(from, to, bytes);  // which has held it against its bound
  }
  Picos bound(std::span<const RankId>, const Work&, const Price&) const override { return 0; }

 private:
  std::optional<StepWork> steps_of(const std::vector<RankId>& members, const Work& work) const;

  Cluster cluster_;
  const Algorithm* algorithm_;
  std::unique_ptr<CostModel> single_;  // of sends that are eager
};

std::optional<StepWork> StepCosts::steps_of(const std::vector<RankId>& members, const Work& work) const {
  StepWork made{nullptr, priced_as(work), {}};
  made.algorithm = algorithm_for(made.work, static_cast<std::uint32_t>(members.size()), cluster_.library, algorithm_);
  if (made.algorithm == nullptr) return std::nullopt;
  for (const RankId member : members) {
    if (member.value < 0 || (!cluster_.flat && static_cast<std::uint64_t>(member.value) >= cluster_.ranks()))
      return std::nullopt;
    made.places.push_back(static_cast<std::uint32_t>(member.value));
  }
  return made;
}

}  // namespace

std::unique_ptr<CostModel> step_costs(const Cluster& cluster, const Algorithm* algorithm) {
  const bool direct_links = cluster.wiring == Wiring::mesh || cluster.wiring == Wiring::cube_mesh;
  if (!cluster.flat && direct_links && cluster.ranks_per_node > 1) {
    throw RequestError(
        "step by step only where a switch joins a node's GPUs: over links from GPU to GPU libraries lay several "
        "rings at once, which these steps do not have; leave --detail out");
  }
  return std::make_unique<StepCosts>(cluster, algorithm);
}

}  // namespace ddx::sim
