#include "sim/collectives/nccl_time.h"

#include <gtest/gtest.h>

#include "sim/cluster/cluster_file.h"
#include "sim/cluster/presets.h"

namespace ddx::sim {
namespace {

constexpr std::uint64_t kGibi = 1U << 30;

const std::vector<OpKind>& kinds() {
  static const std::vector<OpKind> kKinds{OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter,
                                          OpKind::broadcast,  OpKind::reduce,     OpKind::all_to_all,
                                          OpKind::gather,     OpKind::scatter,    OpKind::send,
                                          OpKind::recv,       OpKind::barrier};
  return kKinds;
}

Placement all_of(const Cluster& cluster) {
  return {static_cast<std::uint32_t>(cluster.ranks()), cluster.nodes, cluster.ranks_per_node, cluster.ranks_per_node};
}

// Every preset with GPUs, on one node and on many, up to 8192 ranks; networks of each kind; a rank a node.
std::vector<Cluster> clusters() {
  std::vector<Cluster> all;
  for (const std::string_view name : preset_names()) {
    const Cluster one = *preset(name);
    if (one.gpu.arch == GpuArch::none) continue;
    for (const std::uint32_t times : {1U, 2U, 3U, 16U, 1024U}) {
      Cluster cluster = one;
      cluster.nodes *= times;
      if (cluster.ranks() <= 8192) all.push_back(cluster);
    }
  }
  for (const char* fabric : {"roce", "efa1", "efa", "tcpx", "tcpxo", "tcp"}) {
    all.push_back(
        parse_cluster(std::string(R"({"preset": "dgx-h100", "nodes": 4, "network": {"rate": "100Gb/s", "fabric": ")") +
                          fabric + "\"}}",
                      ""));
  }
  all.push_back(parse_cluster(
      R"({"preset": "dgx-h100", "nodes": 32, "ranks_per_node": 1, "network": {"nics_per_node": 1}})", ""));
  all.push_back(parse_cluster(R"({"gpu": "V100", "ranks_per_node": 8})", ""));
  all.push_back(
      parse_cluster(R"({"gpu": "A100", "ranks_per_node": 4, "local": {"rate": "31GB/s", "wiring": "pcie"}})", ""));
  return all;
}

// The links' rates bound the time from below, whatever was fitted.
TEST(NcclPrice, IsNeverBelowThePortBound) {
  for (const Cluster& cluster : clusters()) {
    for (const OpKind kind : kinds()) {
      for (std::uint64_t bytes = 1; bytes <= 64 * kGibi; bytes *= 8) {
        const Work work{kind, bytes, DataType::f32, RedOp::sum};
        EXPECT_GE(nccl_price(cluster, all_of(cluster), work).total() + 1,
                  nccl_port_bound(cluster, all_of(cluster), work))
            << cluster.name << ' ' << cluster.nodes << ' ' << name_of(kind) << ' ' << bytes;
      }
    }
  }
}

// By hand: what has to go through the slowest stated ports.
TEST(NcclPortBound, IsWhatTheLinksCarry) {
  const Cluster a100 = read_cluster("dgx-a100");
  // 2 * 7/8 GB at 300 GB/s.
  EXPECT_EQ(nccl_port_bound(a100, all_of(a100), {OpKind::all_reduce, 1'000'000'000}), 5'833'333'333);
  EXPECT_EQ(nccl_port_bound(a100, all_of(a100), {OpKind::all_gather, 1'000'000'000}), 2'916'666'667);
  EXPECT_EQ(nccl_port_bound(a100, all_of(a100), {OpKind::barrier, 0}), 23);  // 2 * 7/8 of 4 bytes
  const Cluster four = read_cluster("dgx-h100:4");
  // Each of four nodes must give 2 * 3/4 GB away, at 400 GB/s.
  EXPECT_EQ(nccl_port_bound(four, all_of(four), {OpKind::all_reduce, 1'000'000'000}), 3'750'000'000);
  EXPECT_EQ(nccl_port_bound(four, all_of(four), {OpKind::broadcast, 1'000'000'000}), 2'500'000'000);
  EXPECT_EQ(nccl_port_bound(four, {1, 1, 1, 1}, {OpKind::all_reduce, 1'000'000'000}), 0);
}

// Also where NCCL takes another algorithm, and of parts of a node.
TEST(NcclPrice, GrowsWithTheSize) {
  for (const Cluster& cluster : clusters()) {
    std::vector<Placement> placements{all_of(cluster)};
    for (std::uint32_t part = 2; part < cluster.ranks_per_node; ++part) placements.push_back({part, 1, part, part});
    if (cluster.domain_nodes > 3) placements.push_back({4 * cluster.ranks_per_node, 4, cluster.ranks_per_node, 4});
    for (const Placement& placement : placements) {
      for (const OpKind kind : kinds()) {
        Picos before = 0;
        for (double bytes = 1; bytes <= 64. * kGibi; bytes *= 1.17) {
          const Work work{kind, static_cast<std::uint64_t>(bytes)};
          const Picos time = nccl_price(cluster, placement, work).total();
          EXPECT_GE(time + 1, before) << cluster.name << ' ' << cluster.nodes << ' ' << placement.ranks << ' '
                                      << name_of(kind) << ' ' << bytes;
          before = time;
        }
      }
    }
  }
}

TEST(NcclPrice, GrowsWithTheNodes) {
  for (const char* name : {"dgx-a100", "dgx-h100", "dgx-b200", "mi300x"}) {
    for (const OpKind kind : {OpKind::all_reduce, OpKind::all_gather}) {
      Picos before = 0;
      for (std::uint32_t nodes = 4; nodes <= 1024; nodes *= 2) {
        const Cluster cluster = read_cluster(std::string(name) + ":" + std::to_string(nodes));
        const Picos time = nccl_price(cluster, all_of(cluster), {kind, kGibi}).total();
        EXPECT_GT(time, before) << name << ' ' << nodes;
        before = time;
      }
    }
  }
}

TEST(NcclPrice, NamesWhatIsTaken) {
  const Cluster h100 = read_cluster("dgx-h100");
  const Price price = nccl_price(h100, all_of(h100), {OpKind::all_reduce, kGibi});
  EXPECT_EQ(price.algorithm, "NVLS");
  EXPECT_EQ(price.protocol, "Simple");
  EXPECT_GT(price.latency, 0);
  EXPECT_EQ(nccl_price(h100, all_of(h100), {OpKind::all_to_all, kGibi}).algorithm, "P2P");
}

TEST(NcclPrice, OfOneRankIsALaunch) {
  const Cluster h100 = read_cluster("dgx-h100");
  const Price price = nccl_price(h100, {1, 1, 1, 1}, {OpKind::all_reduce, kGibi});
  EXPECT_EQ(price.transfer, 0);
  EXPECT_GT(price.latency, 0);
  EXPECT_EQ(price.algorithm, "");
}

TEST(NcclPrice, OfABarrierIsThatOfTheSmallestAllReduce) {
  const Cluster h100 = read_cluster("dgx-h100:8");
  EXPECT_EQ(nccl_price(h100, all_of(h100), {OpKind::barrier, 0}).total(),
            nccl_price(h100, all_of(h100), {OpKind::all_reduce, 4}).total());
}

// A call that no algorithm fits must not be priced as something else.
TEST(NcclPrice, WhatCannotBeForcedIsLeftAside) {
  const Cluster a100 = read_cluster("dgx-a100");
  const Work work{OpKind::all_reduce, kGibi};
  EXPECT_EQ(nccl_price(a100, all_of(a100), work, {.algorithm = NcclAlgorithm::nvls}).total(),
            nccl_price(a100, all_of(a100), work).total());
}

// Grouped sends: of N nodes' ranks each has (N-1)/N of its bytes for others behind its NIC of 50 GB/s, so that the bus
// is up to N/(N-1) times that (NVIDIA/nccl-tests#130). A NIC reaches 92 to 97 % of its rate.
TEST(NcclPrice, OnlyWhatLeavesTheNodeTakesTheNics) {
  for (const std::uint32_t nodes : {2U, 3U, 4U, 16U}) {
    const Cluster h100 = read_cluster("dgx-h100:" + std::to_string(nodes));
    for (const OpKind kind : {OpKind::all_to_all, OpKind::gather, OpKind::scatter}) {
      const double least = (nodes - 1.) / nodes * 16 * static_cast<double>(kGibi) / 50e9;
      const double price =
          static_cast<double>(nccl_price(h100, all_of(h100), {kind, 16 * kGibi}).total()) / kPicosPerSecond;
      EXPECT_GE(price, least) << nodes << ' ' << name_of(kind);
      EXPECT_LE(price, least / .9) << nodes << ' ' << name_of(kind);
    }
  }
  // One rank a node, and two racks of 72 ranks of which each sends half to the other one.
  const Cluster h100 = read_cluster("dgx-h100:4");
  const auto seconds = [](const Cluster& cluster, const Placement& placement) {
    const Work work{OpKind::all_to_all, 16 * kGibi};
    return static_cast<double>(nccl_price(cluster, placement, work).total()) / kPicosPerSecond;
  };
  const double whole = 16 * static_cast<double>(kGibi) / 50e9;
  EXPECT_NEAR(seconds(h100, {4, 4, 1, 1}), .75 * whole, .1 * whole);
  EXPECT_NEAR(seconds(read_cluster("gb200-nvl72:36"), {144, 36, 4, 4}), .5 * whole, .06 * whole);
  // Of seven on one node and one on another, the one sends seven eighths.
  EXPECT_NEAR(seconds(read_cluster("dgx-h100:2"), {8, 2, 7, 1, 1, 1}), 7. / 8 * whole, .1 * whole);
}

// NCCL's own model (NVIDIA/nccl:src/graph/tuning.cc@5067397c): 6.58 ms for a GiB on two DGX H100 by trees, whose chains
// go through every GPU; 4.43 where the switches reduce.
TEST(NcclPrice, TreesDoNotReduceInSwitches) {
  const Cluster h100 = read_cluster("dgx-h100:2");
  const auto millis = [&](NcclAlgorithm algorithm) {
    return static_cast<double>(
               nccl_price(h100, all_of(h100), {OpKind::all_reduce, kGibi}, {.algorithm = algorithm}).total()) /
           1e9;
  };
  EXPECT_NEAR(millis(NcclAlgorithm::tree), 6.58, .05 * 6.58);
  EXPECT_NEAR(millis(NcclAlgorithm::nvls_tree), 4.43, .05 * 4.43);
}

TEST(NcclPrice, FewerChannelsAreSlower) {
  const Cluster b200 = read_cluster("dgx-b200");
  const Work work{OpKind::all_reduce, kGibi};
  Picos before = nccl_price(b200, all_of(b200), work, {.algorithm = NcclAlgorithm::ring}).total();
  for (const std::uint32_t channels : {8U, 4U, 2U, 1U}) {
    const Picos time =
        nccl_price(b200, all_of(b200), work, {.algorithm = NcclAlgorithm::ring, .channels = channels}).total();
    EXPECT_GT(time, before);
    before = time;
  }
}

TEST(NcclPrice, HugeSizesEndAtForever) {
  const Cluster h100 = read_cluster("dgx-h100:2");
  EXPECT_EQ(nccl_price(h100, all_of(h100), {OpKind::all_reduce, ~std::uint64_t{0}}).transfer, kForever);
}

TEST(NcclShape, CountsNvlinkDomains) {
  const Cluster rack = read_cluster("gb200-nvl72:36");
  EXPECT_EQ(nccl_shape(rack, {144, 36, 4, 4}).nodes, 2U);
  EXPECT_EQ(nccl_shape(rack, {144, 36, 4, 4}).per_node, 72U);
  EXPECT_EQ(nccl_shape(rack, {8, 2, 4, 4}).nodes, 1U);
}

}  // namespace
}  // namespace ddx::sim
