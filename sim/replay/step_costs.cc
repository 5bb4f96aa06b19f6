#include "sim/replay/step_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/units.h"
#include "sim/collectives/nccl_constants.h"
#include "sim/replay/cluster_costs.h"
#include "sim/replay/flat_costs.h"

namespace ddx::sim {
namespace {

// Members of a communicator whose calls are carried out alone, to see how long their steps are: a second of it.
constexpr std::size_t kMostAlone = 1024;
constexpr std::uint32_t kMostChannels = 8;
constexpr double kNear = .01;       // so near its price is a call that is alone
constexpr double kRounding = 1000;  // ps
constexpr int kMostRuns = 12;

// By the name of NCCL's choice.
const Algorithm* steps_of_choice(std::string_view choice) {
  const auto known = nccl_algorithm_from(choice);
  return known ? find_algorithm(program_of(*known)) : nullptr;
}

// A barrier of NCCL's is an all_reduce of one number.
Work as_nccl_does(const Work& work) {
  if (work.kind != OpKind::barrier) return work;
  return {OpKind::all_reduce, 4, DataType::f32, RedOp::sum};
}

class StepCosts final : public CostModel {
 public:
  StepCosts(const Cluster& cluster, const Algorithm* algorithm)
      : cluster_(cluster), algorithm_(algorithm), single_(cluster_costs(cluster, nullptr)) {
    if (!cluster.flat) network_.emplace(cluster);
  }

  std::string name() const override {
    std::string text = single_->name() + ", step by step";
    if (algorithm_ != nullptr) text += ", algorithm " + std::string(algorithm_->name);
    return text;
  }
  std::uint64_t mark(const Communicator& communicator) const override { return single_->mark(communicator); }
  std::uint64_t mark(RankId from, RankId to) const override { return single_->mark(from, to); }
  std::vector<std::uint32_t> resources(RankId) const override { return {}; }
  bool by_steps() const override { return true; }
  std::vector<std::string> notes() const override { return {notes_.begin(), notes_.end()}; }
  std::optional<Network> network(std::uint32_t ranks) const override {
    return network_ ? *network_ : Network(ranks, cluster_.network);
  }
  std::optional<StepWork> steps(const Communicator& communicator, const Work& work) const override {
    auto made = steps_of(communicator.members, priced_as(work));
    if (made && chosen_by_nccl()) follow_nccl(*made, single_->collective(communicator, work));
    return made;
  }
  std::optional<StepWork> steps(RankId from, RankId to, std::uint64_t bytes) const override {
    auto made = steps_of({from, to}, {OpKind::send, bytes, DataType::unknown, RedOp::unknown});
    if (made && chosen_by_nccl()) follow_nccl(*made, single_->transfer(from, to, bytes));
    return made;
  }

 protected:
  std::optional<Cost> cost_of(const Communicator&, const Work&) const override { return std::nullopt; }
  std::optional<Cost> cost_of(RankId from, RankId to, std::uint64_t bytes) const override {
    return single_->transfer(from, to, bytes);  // which has held it against its bound
  }
  Picos bound(std::span<const RankId>, const Work&, const Price&) const override { return 0; }

 private:
  bool chosen_by_nccl() const { return network_ && algorithm_ == nullptr && cluster_.library == Library::nccl; }
  std::optional<StepWork> steps_of(const std::vector<RankId>& members, const Work& work) const;
  void follow_nccl(StepWork& made, const std::optional<Cost>& cost) const;
  std::uint32_t channels_of(const StepWork& made) const;
  Pace pace_of(const StepWork& made, const Price& price) const;
  Picos alone(const StepWork& made, const Pace& pace) const;
  std::uint64_t key_of(const StepWork& made) const;

  Cluster cluster_;
  const Algorithm* algorithm_;
  std::optional<Network> network_;     // absent: flat, as many ranks as there are
  std::unique_ptr<CostModel> single_;  // of sends that are eager, and what NCCL takes
  mutable std::map<std::uint64_t, Pace> paces_;
  mutable std::set<std::string> notes_;
};

std::optional<StepWork> StepCosts::steps_of(const std::vector<RankId>& members, const Work& work) const {
  StepWork made{nullptr, work, {}, {}};
  made.algorithm = algorithm_for(made.work, static_cast<std::uint32_t>(members.size()), cluster_.library, algorithm_);
  if (made.algorithm == nullptr) return std::nullopt;
  for (const RankId member : members) {
    if (member.value < 0 || (!cluster_.flat && static_cast<std::uint64_t>(member.value) >= cluster_.ranks()))
      return std::nullopt;
    made.places.push_back(static_cast<std::uint32_t>(member.value));
  }
  return made;
}

// The algorithm that NCCL takes, at NCCL's speed: the steps say who is in whose way, and NCCL's model how long a call
// takes that is alone.
void StepCosts::follow_nccl(StepWork& made, const std::optional<Cost>& cost) const {
  if (!cost || made.places.size() < 2) return;
  made.work = as_nccl_does(made.work);
  const Price& price = cost->price;
  const auto ranks = static_cast<std::uint32_t>(made.places.size());
  const Algorithm* program = steps_of_choice(price.algorithm);
  if (program != nullptr && program->runs(made.work.kind, members_on(*network_, made.places))) {
    made.algorithm = program;
  } else {
    made.algorithm = choose_algorithm(made.work, ranks, Library::nccl);
    if (price.algorithm != "P2P") {
      notes_.insert(
          fmt::format("there are no steps of {} for {} among {} ranks: they go as those of {}, as long as {} takes",
                      price.algorithm, name_of(made.work.kind), ranks, made.algorithm->name, price.algorithm));
    }
  }
  made.pace.channels = channels_of(made);
  if (made.places.size() > kMostAlone) {
    notes_.insert(
        fmt::format("{} among {} ranks: steps at the links' own rates, since they are too many to be carried "
                    "out alone",
                    name_of(made.work.kind), format_count(ranks)));
    return;
  }
  const auto [at, fresh] = paces_.try_emplace(key_of(made));
  if (fresh) at->second = pace_of(made, price);
  made.pace = at->second;
}

// One a NIC, where it is the first of a node's ranks that talks to the other nodes. A root has the first place in all.
std::uint32_t StepCosts::channels_of(const StepWork& made) const {
  const std::string_view name = made.algorithm->name;
  const bool by_heads = name == "ring" || name == "tree" || name == "collnet-chain";
  const Members members = members_on(*network_, made.places);
  if (!by_heads || is_rooted(made.work.kind) || members.per_node == members.ranks) return 1;
  const std::uint32_t nics = network_->nics_per_node() * std::max(1U, cluster_.domain_nodes);
  return std::max(1U, std::min({nics, members.per_node, kMostChannels}));
}

// Its steps alone take as long as `price`: what their latencies leave of the price's is launch, and bytes are as many
// more as links are not filled.
Pace StepCosts::pace_of(const StepWork& made, const Price& price) const {
  const auto parts = [](double part) {
    return static_cast<std::uint64_t>(std::clamp(part, 0., 1e6) * static_cast<double>(Pace::kWhole));
  };
  Pace pace;
  pace.channels = made.pace.channels;
  pace.bytes = 0;
  const Picos hops = alone(made, pace);
  pace.launch = std::max<Picos>(0, price.latency - hops);
  if (hops > price.latency) pace.latency = parts(static_cast<double>(price.latency) / static_cast<double>(hops));
  if (made.work.bytes == 0) return pace;
  // The time grows with the bytes, but not in a line: messages wait for latencies, or for others. Never below the
  // price.
  const auto latency = static_cast<double>(price.latency), wanted = static_cast<double>(price.total());
  double low = 0, high = 0, factor = 1, low_time = latency, high_time = 0;
  for (int runs = 0; runs < kMostRuns; ++runs) {
    pace.bytes = parts(factor);
    const auto time = static_cast<double>(alone(made, pace));
    if (time >= wanted - kRounding && time <= (1 + kNear) * wanted) return pace;
    (time < wanted ? low : high) = factor;
    (time < wanted ? low_time : high_time) = time;
    const double aim = (runs == 0 ? 1 : 1 + kNear / 2) * wanted;
    factor = high > 0 && high_time > low_time ? low + (high - low) * (aim - low_time) / (high_time - low_time)
                                              : factor * (aim - latency) / std::max(1., time - latency);
  }
  if (high > 0) pace.bytes = parts(high);
  return pace;
}

Picos StepCosts::alone(const StepWork& made, const Pace& pace) const {
  StepNetwork steps(*network_);
  const StepNetwork::CallId call = steps.begin(*made.algorithm, made.work, made.places, {}, pace);
  for (std::uint32_t member = 0; member < made.places.size(); ++member) steps.arrive(call, member, 0);
  Picos last = 0;
  std::vector<StepNetwork::End> ends;
  while (steps.advance(ends)) {
    for (const StepNetwork::End& end : ends) last = std::max(last, end.time);
  }
  return last;
}

// Of calls that go alike: nodes and leaves are numbered as they first come.
std::uint64_t StepCosts::key_of(const StepWork& made) const {
  RowHash hash;
  const Work& work = made.work;
  hash.add(static_cast<std::uint64_t>(work.kind));
  hash.add(work.bytes);
  hash.add(static_cast<std::uint64_t>(work.type));
  hash.add(static_cast<std::uint64_t>(work.redop));
  std::map<std::uint32_t, std::uint32_t> nodes, leaves, domains;
  const auto number = [](auto& known, std::uint32_t of) {
    return known.try_emplace(of, static_cast<std::uint32_t>(known.size())).first->second;
  };
  for (const std::uint32_t place : made.places) {
    const std::uint32_t node = place / cluster_.ranks_per_node;
    hash.add(std::uint64_t{number(nodes, node)} << 32 | place % cluster_.ranks_per_node);
    hash.add(std::uint64_t{number(domains, node / cluster_.domain_nodes)} << 32 |
             number(leaves, cluster_.nodes_per_leaf == 0 ? 0 : node / cluster_.nodes_per_leaf));
  }
  return hash.value();
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
