// No call is told to take less than its busiest port needs: by hand, for every algorithm and preset, and that what says
// so is refused.
#include "sim/collectives/port_bound.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "base/error.h"
#include "sim/cluster/cluster_file.h"
#include "sim/cluster/presets.h"
#include "sim/collectives/pipeline.h"
#include "sim/collectives/step_simulation.h"
#include "sim/replay/cluster_costs.h"
#include "sim/replay/flat_costs.h"
#include "sim/replay/reference_replay.h"
#include "tests/support/ops_text.h"

namespace ddx::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Property;
using ::testing::Throws;

constexpr std::uint64_t kGiga = 1'000'000'000;
constexpr Picos kMilli = kPicosPerSecond / 1000;

const std::array kKinds{OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter,
                        OpKind::broadcast,  OpKind::reduce,     OpKind::all_to_all,
                        OpKind::gather,     OpKind::scatter,    OpKind::barrier};

std::vector<std::uint32_t> first(std::uint32_t ranks) {
  std::vector<std::uint32_t> places(ranks);
  std::iota(places.begin(), places.end(), 0U);
  return places;
}

Communicator group(const std::vector<std::uint32_t>& places) {
  Communicator made;
  for (const std::uint32_t place : places) made.members.emplace_back(static_cast<std::int64_t>(place));
  return made;
}

Picos bound(const std::string& cluster, const std::vector<std::uint32_t>& places, OpKind kind,
            const Reduction& reduction = {}) {
  return port_bound({kind, kGiga}, Network(read_cluster(cluster)), places, reduction);
}

// Eight H100 with 450 GB/s each, a GB: 2 x 7/8 of it; where their switch reduces all of it once.
TEST(PortBound, WithinANode) {
  EXPECT_EQ(bound("dgx-h100", first(8), OpKind::all_reduce), 3'888'888'888);
  EXPECT_EQ(bound("dgx-h100", first(8), OpKind::all_reduce, {true, false}), 2'222'222'222);
  EXPECT_EQ(bound("dgx-h100", first(8), OpKind::all_gather, {true, false}), 1'944'444'444);
  EXPECT_EQ(bound("dgx-h100", first(8), OpKind::broadcast), 2'222'222'222);
  EXPECT_EQ(bound("dgx-h100", first(8), OpKind::barrier), 0);
  EXPECT_EQ(bound("dgx-h100", first(1), OpKind::all_reduce), 0);
}

// Four nodes of eight NICs of 50 GB/s: each has to give 2 x 3/4 of a GB away, and once where the network reduces; of
// an all_to_all 8 x 3/4 (24 of 32 blocks).
TEST(PortBound, BetweenNodes) {
  EXPECT_EQ(bound("dgx-h100:4", first(32), OpKind::all_reduce, {true, false}), 3'750'000'000);
  EXPECT_EQ(bound("dgx-h100:4", first(32), OpKind::all_reduce, {true, true}), 2'500'000'000);
  EXPECT_EQ(bound("dgx-h100:4", first(32), OpKind::all_to_all), 15'000'000'000);
  // Without switches that reduce, a rank's links are the narrower place: 2 x 31/32 of it over 450 and 50 GB/s.
  EXPECT_EQ(bound("dgx-h100:4", first(32), OpKind::all_reduce), 3'875'000'000);
}

// One rank of each node has its own NIC, whatever else the node has; of two nodes that have seven ranks and one, the
// one must send and get all that there is.
TEST(PortBound, CountsTheNicsOfThoseWhoTakePart) {
  EXPECT_EQ(bound("dgx-h100:2", {3, 11}, OpKind::all_reduce), 20 * kMilli);
  EXPECT_EQ(bound("dgx-h100:2", {3, 11}, OpKind::send), 20 * kMilli);
  const Cluster hosts = parse_cluster(
      R"({"nodes": 2, "ranks_per_node": 8, "library": "mpi", "local": {"rate": "100GB/s"},
          "network": {"rate": "8Gb/s", "fabric": "tcp", "nics_per_node": 1, "rails": false}})",
      "");
  const std::vector<std::uint32_t> uneven{0, 1, 2, 3, 4, 5, 6, 8};
  EXPECT_EQ(port_bound({OpKind::all_reduce, kGiga}, Network(hosts), uneven, {}), 1000 * kMilli);
  EXPECT_EQ(port_bound({OpKind::all_gather, kGiga}, Network(hosts), uneven, {}), 875 * kMilli);
  EXPECT_EQ(port_bound({OpKind::all_to_all, kGiga}, Network(hosts), uneven, {}), 875 * kMilli);
  EXPECT_EQ(port_bound({OpKind::gather, kGiga}, Network(hosts), uneven, {}), 125 * kMilli)
      << "the root may be one of 7";
}

// Of a mesh two ranks have one link of 64 GB/s, all eight seven of them; a rack is one node.
TEST(PortBound, OfOtherNodes) {
  EXPECT_EQ(bound("mi300x", {2, 5}, OpKind::broadcast), 15'625'000'000);
  EXPECT_EQ(bound("mi300x", first(8), OpKind::broadcast), 2'232'142'857);
  EXPECT_EQ(bound("gb200-nvl72", {0, 71}, OpKind::broadcast), 1'111'111'111);
}

// What a GB needs at least on a port of 1 GB/s is a second.
class Boastful final : public CostModel {
 public:
  explicit Boastful(Picos time) : time_(time) {}
  std::string name() const override { return "a wish"; }
  std::uint64_t mark(const Communicator&) const override { return 0; }
  std::uint64_t mark(RankId, RankId) const override { return 0; }
  std::vector<std::uint32_t> resources(RankId) const override { return {}; }

 protected:
  std::optional<Cost> cost_of(const Communicator&, const Work&) const override {
    return Cost{{0, time_, "wishing", "", 0}, {}, {}, {}};
  }
  std::optional<Cost> cost_of(RankId, RankId, std::uint64_t) const override {
    return Cost{{0, time_, "wishing", "", 0}, {}, {}, {}};
  }
  Picos bound(std::span<const RankId> members, const Work& work, const Price&) const override {
    return port_bound(work, static_cast<std::uint32_t>(members.size()), kGiga);
  }

 private:
  Picos time_;
};

TEST(PortBound, APriceBelowItIsRefused) {
  const std::string call = "world 2\nall broadcast u8 1000000000 root=0\n";
  const std::string send = "world 2\n0 send u8 1000000000 to 1\n1 recv u8 1000000000 from 0\n";
  for (const std::string& ops : {call, send}) {
    const auto run = [&](Picos time) {
      const Boastful costs(time);
      ReplayOptions options;
      options.timing.costs = &costs;
      return replay(ddx::testing::trace_of(ops), options).rank_end.front();
    };
    EXPECT_EQ(run(kPicosPerSecond), kPicosPerSecond);
    EXPECT_THAT([&] { run(kPicosPerSecond - 1); },
                Throws<Error>(Property(&Error::what,
                                       AllOf(HasSubstr("1000000000 bytes among 2 ranks by wishing would take 1e+06 us"),
                                             HasSubstr("less than the 1e+06 us"), HasSubstr("no time is told")))));
  }
}

// An algorithm whose steps move half of the buffer only.
std::unique_ptr<Schedule> half_a_chain(const Work& work, const Members&) {
  auto pipeline = std::make_unique<Pipeline>(1, work.bytes / 2);
  pipeline->connect(pipeline->add(0), pipeline->add(1), work.bytes / 2);
  return pipeline;
}

Price half_a_price(const Work& work, const Members&, const LinkSpec& port) {
  return {port.latency, transfer_time(work.bytes / 2, port.bytes_per_second), "half", "", 1};
}

TEST(PortBound, StepsBelowItAreRefused) {
  constexpr OpKind kBroadcast[] = {OpKind::broadcast};
  const Algorithm half{"half", kBroadcast, nullptr, half_a_chain, half_a_price, nullptr, {}};
  const LinkSpec port{kGiga, 1000};
  const Work work{OpKind::broadcast, kGiga};
  const std::array<Picos, 2> together{0, 0}, apart{0, kPicosPerSecond};
  const auto refused = Throws<Error>(Property(&Error::what, HasSubstr("by half would take 500000 us")));
  EXPECT_THAT([&] { simulate_steps(half, work, together, Network(2, port)); }, refused);
  EXPECT_NO_THROW(simulate_steps(half, work, apart, Network(2, port))) << "a second after the first came";
  const auto costs = flat_costs({port, &half, Library::nccl});
  EXPECT_THAT([&] { costs->collective(group(first(2)), work); }, refused);
}

// Whatever carries a call out, on any network, of any size and in any place: none is refused.
void expect_possible(const CostModel& costs, const std::vector<std::uint32_t>& places, const std::string& where) {
  const Communicator members = group(places);
  for (const OpKind kind : kKinds) {
    for (std::uint64_t bytes = 1; bytes <= 64 * (std::uint64_t{1} << 30); bytes *= 8) {
      EXPECT_NO_THROW(costs.collective(members, {kind, bytes + bytes / 3, DataType::f32, RedOp::sum}))
          << where << ' ' << name_of(kind) << " of " << bytes << " among " << places.size();
    }
  }
}

TEST(PortBound, NoAlgorithmIsBelowItOnAFlatNetwork) {
  for (const LinkSpec& port : {LinkSpec{50 * kGiga, 0}, LinkSpec{450 * kGiga, 1'000'000}, LinkSpec{4999 * kGiga, 0}}) {
    for (const Algorithm& algorithm : algorithms()) {
      for (const std::uint32_t ranks : {2U, 3U, 7U, 8U, 64U, 100U, 4096U}) {
        expect_possible(*flat_costs({port, &algorithm, Library::nccl}), first(ranks), std::string(algorithm.name));
      }
    }
  }
}

// The first of each node, every second one, all; nodes that are not alike, and NVLink domains that are not: a whole one
// and a few of the next.
std::vector<std::vector<std::uint32_t>> placements(const Cluster& cluster) {
  std::vector<std::vector<std::uint32_t>> all(4);
  const auto ranks = static_cast<std::uint32_t>(cluster.ranks());
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::uint32_t local = rank % cluster.ranks_per_node, node = rank / cluster.ranks_per_node;
    all[0].push_back(rank);
    if (local == 0) all[1].push_back(rank);
    if (local % 2 == 0) all[2].push_back(rank);
    if (local == 0 || node % 2 == 0) all[3].push_back(rank);
  }
  for (const std::uint32_t more : {1U, 2U, 8U}) {
    const std::uint32_t domain = cluster.ranks_per_node * cluster.domain_nodes;
    if (domain + more < ranks) all.push_back(first(domain + more));
    if (2 * domain + more < ranks) all.push_back(first(2 * domain + more));
  }
  std::erase_if(all, [](const auto& places) { return places.size() < 2; });
  for (std::uint32_t count = 2; count < std::min(cluster.ranks_per_node, ranks); ++count) all.push_back(first(count));
  return all;
}

TEST(PortBound, NoPresetIsBelowIt) {
  for (const std::string_view name : preset_names()) {
    for (const std::uint32_t times : {1U, 2U, 3U, 32U}) {
      Cluster cluster = *preset(name);
      cluster.nodes *= times;
      for (const bool sharp : {false, true}) {
        cluster.sharp = sharp;
        for (const std::uint32_t nics : {1U, 8U, 16U}) {
          cluster.nics_per_node = nics;
          const auto costs = cluster_costs(cluster);
          for (const auto& places : placements(cluster)) {
            expect_possible(
                *costs, places,
                fmt::format("{}:{} sharp {} nics {} rank {}", name, cluster.nodes, sharp, nics, places.back()));
          }
        }
      }
    }
  }
}

// Eight ranks on each second node and one on the others, behind one NIC each: the eight decide.
TEST(PortBound, TheFullestNodeDecidesAnAllToAll) {
  Cluster cluster = read_cluster("dgx-h100:32");
  cluster.nics_per_node = 1;
  const auto places = placements(cluster).at(3);
  const Work work{OpKind::all_to_all, 1'431'655'765};
  // Each of eight sends 136 of 144 blocks over a NIC of 50 GB/s.
  const double least = 8 * 136. / 144 * static_cast<double>(work.bytes) / 50e9;
  EXPECT_GE(static_cast<double>(cluster_costs(cluster)->collective(group(places), work)->price.total()) / 1e12, least);
}

// Hosts of gloo and MPI whose ranks share a NIC: what no closed form knows is carried out.
TEST(PortBound, NoAlgorithmIsBelowItOnHosts) {
  for (const std::string library : {"gloo", "mpi"}) {
    const Cluster hosts = parse_cluster(
        R"({"nodes": 3, "ranks_per_node": 4, "local": {"rate": "100GB/s", "latency": "0us"}, "library": ")" + library +
            R"(", "network": {"rate": "100Gb/s", "latency": "0us", "fabric": "tcp", "nics_per_node": 2}})",
        "");
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.name == "nvls") continue;  // for one node only
      const auto costs = cluster_costs(hosts, &algorithm);
      for (const auto& places : placements(hosts)) {
        for (const OpKind kind : kKinds) {
          for (const std::uint64_t bytes : {1U, 1000U, 1'000'003U, 100'000'007U}) {
            EXPECT_NO_THROW(costs->collective(group(places), {kind, bytes}))
                << library << ' ' << algorithm.name << ' ' << name_of(kind) << ' ' << bytes << ' ' << places.size();
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ddx::sim
