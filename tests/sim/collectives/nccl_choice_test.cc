// NCCL's choice, against what its tuning model is published to say and what was seen on machines.
#include "sim/collectives/nccl_choice.h"

#include <gtest/gtest.h>

#include <string>

#include "sim/cluster/cluster_file.h"
#include "sim/collectives/nccl_graph.h"

namespace ddx::sim {
namespace {

constexpr std::uint64_t kMebi = 1U << 20;
constexpr std::uint64_t kGibi = 1U << 30;

Placement ranks_on(std::uint32_t ranks, std::uint32_t nodes) { return {ranks, nodes, ranks / nodes, ranks / nodes}; }

std::string choice(const Cluster& cluster, std::uint32_t ranks, std::uint32_t nodes, OpKind kind, std::uint64_t bytes,
                   const NcclForced& forced = {}) {
  const auto chosen = nccl_choice(cluster, ranks_on(ranks, nodes), {kind, bytes, DataType::f32, RedOp::sum}, forced);
  if (!chosen) return "";
  return std::string(name_of(chosen->algorithm)) + "/" + std::string(name_of(chosen->protocol));
}

// The bus bandwidth of one algorithm at its best protocol, GB/s.
double bus(const Cluster& cluster, std::uint32_t ranks, std::uint32_t nodes, NcclAlgorithm algorithm) {
  double best = 0;
  for (const NcclCandidate& candidate :
       nccl_candidates(cluster, ranks_on(ranks, nodes), {OpKind::all_reduce, kGibi, DataType::f32, RedOp::sum})) {
    if (candidate.algorithm == algorithm && candidate.protocol == NcclProtocol::simple && candidate.enabled()) {
      best = candidate.bandwidth * 2 * (ranks - 1) / ranks;
    }
  }
  return best;
}

// Seen on 8 H200 (stas00/ml-engineering:network/README.md@744d01e): Ring/LL up to 1 MiB, NVLS from 2 MiB.
TEST(NcclChoice, OfAllReduceOnEightH200) {
  const Cluster h200 = read_cluster("dgx-h200");
  for (std::uint64_t bytes = 8; bytes <= kMebi; bytes *= 2) {
    EXPECT_EQ(choice(h200, 8, 1, OpKind::all_reduce, bytes), "Ring/LL") << bytes;
  }
  for (std::uint64_t bytes = 2 * kMebi; bytes <= 16 * kGibi; bytes *= 2) {
    EXPECT_EQ(choice(h200, 8, 1, OpKind::all_reduce, bytes), "NVLS/Simple") << bytes;
  }
}

// Seen there by number of GPUs at 8 GiB: a ring with 4, NVLS from 5.
TEST(NcclChoice, OfFewerH200) {
  const Cluster h200 = read_cluster("dgx-h200");
  EXPECT_EQ(choice(h200, 4, 1, OpKind::all_reduce, 8 * kGibi), "Ring/Simple");
  for (const std::uint32_t ranks : {5U, 6U, 7U, 8U}) {
    EXPECT_EQ(choice(h200, ranks, 1, OpKind::all_reduce, 8 * kGibi), "NVLS/Simple") << ranks;
  }
  const Cluster b200 = read_cluster("dgx-b200");
  EXPECT_EQ(choice(b200, 4, 1, OpKind::all_reduce, 8 * kGibi), "Ring/Simple");
  EXPECT_EQ(choice(b200, 5, 1, OpKind::all_reduce, 8 * kGibi), "Ring/Simple");
  EXPECT_EQ(choice(b200, 7, 1, OpKind::all_reduce, 8 * kGibi), "NVLS/Simple");
  EXPECT_EQ(choice(b200, 8, 1, OpKind::all_reduce, 8 * kGibi), "NVLS/Simple");
}

TEST(NcclChoice, WithoutNvlsIsARing) {
  EXPECT_EQ(choice(read_cluster("dgx-h200"), 8, 1, OpKind::all_reduce, 16 * kGibi, {.nvls = false}), "Ring/Simple");
  EXPECT_EQ(choice(read_cluster("dgx-a100"), 8, 1, OpKind::all_reduce, 16 * kGibi), "Ring/Simple");
}

TEST(NcclChoice, OfGathersOnOneNodeIsARing) {
  for (const char* name : {"dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200"}) {
    for (const OpKind kind : {OpKind::all_gather, OpKind::reduce_scatter}) {
      for (std::uint64_t bytes = 1024; bytes <= 16 * kGibi; bytes *= 4) {
        EXPECT_TRUE(choice(read_cluster(name), 8, 1, kind, bytes).starts_with("Ring/")) << name << ' ' << bytes;
      }
    }
  }
}

TEST(NcclChoice, OfRootedOperationsIsARing) {
  for (const OpKind kind : {OpKind::broadcast, OpKind::reduce}) {
    EXPECT_TRUE(choice(read_cluster("dgx-h100"), 8, 1, kind, kGibi).starts_with("Ring/"));
    EXPECT_TRUE(choice(read_cluster("dgx-h100:4"), 32, 4, kind, kGibi).starts_with("Ring/"));
  }
}

TEST(NcclChoice, IsNoneForSendsAndForOneRank) {
  for (const OpKind kind : {OpKind::send, OpKind::all_to_all, OpKind::gather, OpKind::scatter}) {
    EXPECT_EQ(choice(read_cluster("dgx-h100"), 8, 1, kind, kMebi), "");
  }
  EXPECT_EQ(choice(read_cluster("dgx-h100"), 1, 1, OpKind::all_reduce, kMebi), "");
}

// Published peaks that the graphs reproduce: 240 of A100, 360 and 476 of H100, 720 and 829 of B200; over four nodes 384
// and 364 of DGX H100, 192 of DGX A100.
TEST(NcclGraphs, ReproducePeaks) {
  EXPECT_NEAR(bus(read_cluster("dgx-a100"), 8, 1, NcclAlgorithm::ring), 240, .5);
  EXPECT_NEAR(bus(read_cluster("dgx-h100"), 8, 1, NcclAlgorithm::ring), 360, .5);
  EXPECT_NEAR(bus(read_cluster("dgx-h100"), 8, 1, NcclAlgorithm::nvls), 476, .5);
  EXPECT_NEAR(bus(read_cluster("dgx-b200"), 8, 1, NcclAlgorithm::ring), 720, .5);
  EXPECT_NEAR(bus(read_cluster("dgx-b200"), 8, 1, NcclAlgorithm::nvls), 829, .5);
  EXPECT_NEAR(bus(read_cluster("dgx-h100:4"), 32, 4, NcclAlgorithm::ring), 384, .5);
  EXPECT_NEAR(bus(read_cluster("dgx-h100:4"), 32, 4, NcclAlgorithm::nvls_tree), 364, .5);
  EXPECT_NEAR(bus(read_cluster("dgx-a100:4"), 32, 4, NcclAlgorithm::ring), 192, .5);
}

TEST(NcclGraphs, OfTheCubeMeshCountItsRings) {
  Cluster v100 = parse_cluster(R"({"gpu": "V100", "ranks_per_node": 8})", "v100");
  // Measured bus bandwidths (VIA-Research/vTrain:trace/v100@f8dda84) are these numbers of rings at 22.5 GB/s each.
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> rings{{2, 1}, {3, 2}, {4, 4}, {6, 2}, {7, 4}, {8, 6}};
  for (const auto& [ranks, count] : rings) {
    EXPECT_EQ(nccl_graphs(v100, {ranks, 1, ranks}).ring.channels, count) << ranks;
  }
}

// By hand from the published tables: H100 x 8, 1 MiB.
TEST(NcclCandidates, HaveTheTablesTimes) {
  const auto candidates =
      nccl_candidates(read_cluster("dgx-h100"), ranks_on(8, 1), {OpKind::all_reduce, kMebi, DataType::f32, RedOp::sum});
  ASSERT_EQ(candidates.size(), kNcclAlgorithms * kNcclProtocols);
  const auto find = [&](NcclAlgorithm algorithm, NcclProtocol protocol) {
    for (const NcclCandidate& candidate : candidates) {
      if (candidate.algorithm == algorithm && candidate.protocol == protocol) return candidate;
    }
    return NcclCandidate{};
  };
  // Ring/LL: 6.6 + 14 * .6 us; min(141, 360/2) * 8/14 GB/s.
  const NcclCandidate ring_ll = find(NcclAlgorithm::ring, NcclProtocol::ll);
  EXPECT_NEAR(ring_ll.latency_us, 15.0, 1e-9);
  EXPECT_NEAR(ring_ll.bandwidth, 141. * 8 / 14, 1e-9);
  EXPECT_NEAR(ring_ll.time_us, 15.0 + 1048.576 / (141. * 8 / 14), 1e-9);
  // Ring/LL128: 14 + 14 * 1.9 us; min(.92 * 360, 12 * 36.7) * 8/14.
  EXPECT_NEAR(find(NcclAlgorithm::ring, NcclProtocol::ll128).latency_us, 40.6, 1e-9);
  EXPECT_NEAR(find(NcclAlgorithm::ring, NcclProtocol::ll128).bandwidth, .92 * 360 * 8 / 14, 1e-9);
  // Tree/Simple: 8.4 + 2 * 7 * 4 us; .92 * 360 / 2 GB/s, times .5 at 1 MiB (2^14 lines of 64 bytes).
  const NcclCandidate tree = find(NcclAlgorithm::tree, NcclProtocol::simple);
  EXPECT_NEAR(tree.latency_us, 64.4, 1e-9);
  EXPECT_NEAR(tree.time_us, 64.4 + 1048.576 / (.92 * 360 / 2 * .5), 1e-6);
  // NVLS: 25 us; 8 * 40 * .85 * 7/8 * 2 * 8/14.
  EXPECT_NEAR(find(NcclAlgorithm::nvls, NcclProtocol::simple).latency_us, 25, 1e-9);
  EXPECT_NEAR(find(NcclAlgorithm::nvls, NcclProtocol::simple).bandwidth, 272, 1e-9);
  for (const NcclAlgorithm refused : {NcclAlgorithm::nvls_tree, NcclAlgorithm::collnet_chain, NcclAlgorithm::pat}) {
    EXPECT_FALSE(find(refused, NcclProtocol::simple).enabled());
    EXPECT_FALSE(find(refused, NcclProtocol::simple).refusal.empty());
  }
}

// Four DGX H100, 1 GiB: rings cross 2 (4-1) times, at 14 us, 1.4 times all.
TEST(NcclCandidates, OfSeveralNodes) {
  for (const NcclCandidate& candidate : nccl_candidates(read_cluster("dgx-h100:4"), ranks_on(32, 4),
                                                        {OpKind::all_reduce, kGibi, DataType::f32, RedOp::sum})) {
    if (candidate.protocol != NcclProtocol::simple) continue;
    if (candidate.algorithm == NcclAlgorithm::ring) {
      EXPECT_NEAR(candidate.latency_us, 1.4 * (8.4 + 56 * 3.4 + 6 * 14), 1e-9);
    }
    if (candidate.algorithm == NcclAlgorithm::nvls_tree) {
      EXPECT_NEAR(candidate.latency_us, 25 + 2 * 2 * 20.9, 1e-9);
    }
    if (candidate.algorithm == NcclAlgorithm::tree) {
      EXPECT_NEAR(candidate.latency_us, 8.4 + 2 * (7 * 4 + 2 * 14), 1e-9);
    }
  }
}

TEST(NcclCandidates, Fp8OfManyRanksKeepsFromRings) {
  const Work fp8{OpKind::all_reduce, kMebi, DataType::f8e4m3, RedOp::sum};
  const auto chosen = nccl_choice(read_cluster("dgx-h100:2"), ranks_on(16, 2), fp8);
  ASSERT_TRUE(chosen);
  EXPECT_NE(chosen->algorithm, NcclAlgorithm::ring);
}

TEST(NcclCandidates, PatIsForOneRankANode) {
  Cluster single = parse_cluster(R"({"preset": "dgx-h100", "nodes": 16, "ranks_per_node": 1})", "single");
  bool pat = false;
  for (const NcclCandidate& candidate :
       nccl_candidates(single, ranks_on(16, 16), {OpKind::all_gather, kMebi, DataType::f32, RedOp::unknown})) {
    pat |= candidate.algorithm == NcclAlgorithm::pat && candidate.enabled();
  }
  EXPECT_TRUE(pat);
}

TEST(NcclCandidates, SharpOpensCollNet) {
  Cluster sharp = read_cluster("dgx-h100:8");
  EXPECT_EQ(bus(sharp, 64, 8, NcclAlgorithm::collnet_chain), 0);
  sharp.sharp = true;
  EXPECT_GT(bus(sharp, 64, 8, NcclAlgorithm::collnet_chain), 0);
  EXPECT_GT(bus(sharp, 64, 8, NcclAlgorithm::nvls), 0);
}

// The factor by size (64 B to 256 MiB): LL .4 at 512 KiB, Simple .5 there; 1 below and above.
TEST(NcclTables, TreeFactor) {
  EXPECT_DOUBLE_EQ(nccl_tree_factor(NcclProtocol::ll, 63), 1);
  EXPECT_DOUBLE_EQ(nccl_tree_factor(NcclProtocol::ll, 64), 1);
  EXPECT_DOUBLE_EQ(nccl_tree_factor(NcclProtocol::simple, 64), .9);
  EXPECT_DOUBLE_EQ(nccl_tree_factor(NcclProtocol::ll, 512 << 10), .4);
  EXPECT_DOUBLE_EQ(nccl_tree_factor(NcclProtocol::simple, 512 << 10), .5);
  EXPECT_DOUBLE_EQ(nccl_tree_factor(NcclProtocol::simple, kGibi), 1);
}

}  // namespace
}  // namespace ddx::sim
