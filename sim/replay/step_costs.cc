#include "sim/replay/step_costs.h"

#include <utility>

#include "base/error.h"
#include "sim/collectives/step_simulation.h"
#include "sim/replay/cluster_costs.h"

namespace ddx::sim {
namespace {

class StepCosts final : public CostModel {
 public:
  StepCosts(const Cluster& cluster, const Algorithm* algorithm)
      : cluster_(cluster), algorithm_(algorithm), single_(cluster_costs(cluster, nullptr)), network_(cluster) {}

  std::string name() const override {
    std::string text = single_->name() + ", step by step";
    if (algorithm_ != nullptr) text += ", algorithm " + std::string(algorithm_->name);
    return text;
  }
  std::uint64_t mark(const Communicator& communicator) const override { return single_->mark(communicator); }
  std::uint64_t mark(RankId from, RankId to) const override { return single_->mark(from, to); }
  std::optional<Cost> collective(const Communicator&, const Work&) const override { return std::nullopt; }
  std::optional<Cost> transfer(RankId from, RankId to, std::uint64_t bytes) const override {
    return single_->transfer(from, to, bytes);
  }
  std::vector<std::uint32_t> resources(RankId rank) const override { return single_->resources(rank); }
  bool by_steps() const override { return true; }
  std::optional<std::vector<Picos>> ends(const Communicator& communicator, const Work& work,
                                         const std::vector<Picos>& arrivals) const override;

 private:
  Cluster cluster_;
  const Algorithm* algorithm_;
  std::unique_ptr<CostModel> single_;  // of sends and receives
  Network network_;
};

std::optional<std::vector<Picos>> StepCosts::ends(const Communicator& communicator, const Work& work,
                                                  const std::vector<Picos>& arrivals) const {
  Work asked = work;
  if (work.kind == OpKind::new_group || work.kind == OpKind::split_group) asked.kind = OpKind::barrier;
  const auto ranks = static_cast<std::uint32_t>(arrivals.size());
  const Members members = flat_members(ranks);
  const Algorithm* algorithm = algorithm_;
  if (algorithm == nullptr || !algorithm->runs(asked.kind, members)) {
    algorithm = choose_algorithm(asked, ranks, cluster_.library);
  }
  if (algorithm == nullptr) return std::nullopt;
  if (cluster_.flat) return simulate_steps(*algorithm, asked, arrivals, Network(ranks, cluster_.network));
  std::vector<std::uint32_t> places;
  for (const RankId member : communicator.members) {
    if (member.value < 0 || static_cast<std::uint64_t>(member.value) >= cluster_.ranks()) return std::nullopt;
    places.push_back(static_cast<std::uint32_t>(member.value));
  }
  if (places.size() != arrivals.size()) return std::nullopt;
  return simulate_steps(*algorithm, asked, arrivals, network_, places);
}

}  // namespace

std::unique_ptr<CostModel> step_costs(const Cluster& cluster, const Algorithm* algorithm) {
  const bool direct_links = cluster.wiring == Wiring::mesh || cluster.wiring == Wiring::cube_mesh;
  if (!cluster.flat && direct_links && cluster.ranks_per_node > 1) {
    throw Error(
        "step by step only where a switch joins a node's GPUs: over links from GPU to GPU libraries lay several "
        "rings at once, which these steps do not have; leave --detail out");
  }
  return std::make_unique<StepCosts>(cluster, algorithm);
}

}  // namespace ddx::sim
