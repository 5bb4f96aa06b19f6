// Costs on described clusters: sharing and latencies by hand, published figures, and folding as a property.
#include "sim/replay/cluster_costs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/error.h"
#include "sim/cluster/cluster_file.h"
#include "sim/cluster/presets.h"
#include "sim/replay/reference_replay.h"
#include "sim/replay/step_costs.h"
#include "tests/support/ops_text.h"
#include "tests/support/random_program.h"

namespace ddx::sim {
namespace {

using ddx::testing::trace_of;

constexpr double kGibi = 1U << 30;

std::vector<Picos> ends(const Trace& trace, const CostModel& costs, bool fold = true) {
  ReplayOptions options;
  options.timing.costs = &costs;
  options.fold = fold;
  const ReplayResult result = replay(trace, options);
  EXPECT_EQ(result.outcome, ReplayResult::Outcome::completes) << result.reason;
  return result.rank_end;
}

// Seconds until the last rank is done.
double time_on(const std::string& cluster, const std::string& ops) {
  const auto costs = cluster_costs(parse_cluster(cluster, ""));
  const auto all = ends(trace_of(ops), *costs);
  return all.empty() ? 0 : static_cast<double>(*std::max_element(all.begin(), all.end())) / kPicosPerSecond;
}

// Eight nodes of eight ranks that share one NIC of 12.5 GB/s, as MPI jobs on plain hosts do.
constexpr auto* kHosts =
    R"({"nodes": 8, "ranks_per_node": 8, "library": "mpi", "local": {"rate": "100GB/s", "latency": "1us"},
        "network": {"rate": "100Gb/s", "latency": "20us", "fabric": "tcp", "nics_per_node": 1, "rails": false}})";

// Eight nodes of one rank, four on a leaf whose uplinks carry what one NIC does.
constexpr auto* kLeaves =
    R"({"nodes": 8, "ranks_per_node": 1, "library": "gloo", "network": {"rate": "100Gb/s", "latency": "1us",
        "fabric": "tcp", "nics_per_node": 1, "rails": false, "nodes_per_leaf": 4, "oversubscription": 4}})";

// What is priced alike alone is priced alike beside others: folding must not take communicators for each other.
TEST(ClusterCosts, folding_comes_to_the_same_as_every_rank_run) {
  for (const std::string cluster : {R"({"preset": "gb200-nvl72", "nodes": 36})",
                                    R"({"preset": "dgx-h100", "nodes": 8, "network": {"nodes_per_leaf": 2,
        "oversubscription": 4}})",
                                    R"({"preset": "mi300x", "nodes": 8})", kHosts}) {
    const auto costs = cluster_costs(parse_cluster(cluster, ""));
    for (std::uint64_t seed = 1; seed <= 25; ++seed) {
      ddx::testing::ProgramOptions program;
      program.seed = seed;
      const Trace trace = trace_of(random_program(program));
      EXPECT_EQ(ends(trace, *costs, true), ends(trace, *costs, false)) << cluster << " seed " << seed;
    }
  }
  // Two ranks within one NVLink domain, and two of two domains, both pairs on different hosts.
  const std::string both =
      "world 144\npg a = 0,4\npg b = 68,72\n0,4 all_reduce f32 268435456 a\n68,72 all_reduce f32 268435456 b\n";
  const auto costs = cluster_costs(read_cluster("gb200-nvl72:36"));
  EXPECT_EQ(ends(trace_of(both), *costs, true), ends(trace_of(both), *costs, false));
  EXPECT_GT(ends(trace_of(both), *costs)[68], 5 * ends(trace_of(both), *costs)[0]);
}

// 64 ranks halve and double: of 100 MB each node sends 2 x 7/8 x 8 = 1.4 GB over its NIC, 112 ms, whoever shares it;
// the 2 x 6 messages wait 20 us each at most.
TEST(ClusterCosts, ranks_of_a_host_share_its_nic) {
  const double seconds = time_on(kHosts, "world 64\nall all_reduce f32 25000000\n");
  EXPECT_GE(seconds, .112);
  EXPECT_LE(seconds, .112 + 12 * 20e-6 + .0002);
  const auto steps = step_costs(parse_cluster(kHosts, ""));
  const Trace trace = trace_of("world 64\nall all_reduce f32 25000000\n");
  EXPECT_EQ(ends(trace, *steps, false), ends(trace, *cluster_costs(parse_cluster(kHosts, ""))));
}

// With nothing beside it nothing is in its way: no link is taken to do more than it can.
TEST(ClusterCosts, alone_a_call_takes_its_price) {
  for (const std::string_view name : preset_names()) {
    for (const std::uint32_t nodes : {1U, 2U, 8U}) {
      Cluster cluster = *preset(name);
      cluster.nodes *= nodes;
      const auto costs = cluster_costs(cluster);
      Communicator world;
      auto& members = world.members;
      for (std::uint64_t rank = 0; rank < cluster.ranks(); ++rank)
        members.emplace_back(static_cast<std::int64_t>(rank));
      for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce"}) {
        for (const std::uint64_t bytes : {std::uint64_t{1} << 16, std::uint64_t{1} << 26, std::uint64_t{1} << 32}) {
          const std::uint64_t count = std::string(kind) == "all_gather" ? bytes / members.size() : bytes;
          const auto text = fmt::format("world {}\nall {} u8 {}{}\n", members.size(), kind, count,
                                        is_rooted(*op_kind_from(kind)) ? " root=0" : "");
          const std::uint64_t whole = count == bytes ? bytes : count * members.size();
          const auto cost = costs->collective(world, {*op_kind_from(kind), whole, DataType::u8, RedOp::unknown});
          ASSERT_TRUE(cost) << name << text;
          // To a part in a hundred thousand: parts of links are whole millionths.
          EXPECT_NEAR(static_cast<double>(ends(trace_of(text), *costs).front()),
                      static_cast<double>(cost->price.total()), 1e-5 * static_cast<double>(cost->price.total()))
              << name << " " << nodes << " " << text << cost->price.algorithm;
        }
      }
    }
  }
}

// From rank 0 along a node to rank 3, which sends the same elsewhere meanwhile: nothing is shared, as rank 3 passes
// nothing on. Rank 2 does.
TEST(ClusterCosts, the_end_of_a_chain_passes_nothing_on) {
  const auto beside = [](int sender) {
    const auto text = fmt::format(
        "world 8\npg a = 0,1,2,3\npg b = {0},5\n0-3 broadcast u8 4294967296 a root=0 async stream=1\n"
        "{0},5 broadcast u8 4294967296 b root={0} async stream=2\n",
        sender);
    return time_on(R"({"preset": "dgx-a100"})", text);
  };
  const double alone =
      time_on(R"({"preset": "dgx-a100"})", "world 8\npg a = 0,1,2,3\n0-3 broadcast u8 4294967296 a root=0\n");
  EXPECT_DOUBLE_EQ(beside(3), alone);
  EXPECT_GT(beside(2), 1.3 * alone);
}

// A leaf's uplinks are shared by whoever sends over them, however the groups lie.
TEST(ClusterCosts, groups_across_leaves_share_the_uplinks) {
  const auto pairs = [](int count) {
    std::string text = "world 8\n";
    for (int i = 0; i < count; ++i) {
      text += fmt::format("pg g{0} = {0},{1}\n{0},{1} all_reduce f32 268435456 g{0}\n", i, i + 4);
    }
    return time_on(kLeaves, text);
  };
  EXPECT_NEAR(pairs(1), kGibi / 12.5e9, 1e-4);
  for (const int count : {2, 3, 4}) EXPECT_NEAR(pairs(count), count * pairs(1), 1e-4 * count) << count;
  // One alone across all leaves has them to itself: 2 x 7/8 of it over each.
  EXPECT_NEAR(time_on(kLeaves, "world 8\nall all_reduce f32 268435456\n"), 2 * 7. / 8 * kGibi / 12.5e9, 1e-3);
}

// Thousands of ranks on a leaf take a thousandth of its uplinks each, and less.
TEST(ClusterCosts, small_parts_of_a_link_are_not_rounded_up) {
  const auto on = [](int nodes_per_leaf) {
    return time_on(
        fmt::format(R"({{"preset": "dgx-h100", "nodes": 512, "network": {{"nodes_per_leaf": {}}}}})", nodes_per_leaf),
        "world 4096\nall all_reduce bf16 1073741824\n");
  };
  EXPECT_DOUBLE_EQ(on(256), on(512));
  EXPECT_DOUBLE_EQ(on(64), on(512));
}

TEST(ClusterCosts, links_of_a_domain_do_not_load_its_leaf) {
  const std::string ops = "world 144\n12 send f32 268435456 to 16\n16 recv f32 268435456 from 12\n";
  EXPECT_DOUBLE_EQ(
      time_on(R"({"preset": "gb200-nvl72", "nodes": 36, "network": {"nodes_per_leaf": 4, "oversubscription": 1000}})",
              ops),
      time_on(R"({"preset": "gb200-nvl72", "nodes": 36})", ops));
}

// What a cluster states beyond its kind's latency comes on top: there and back, once for each message that waits.
TEST(ClusterCosts, stated_latencies_count) {
  const std::string ops = "world 16\nall all_reduce f32 1024\n";
  const auto with = [&](const std::string& more) {
    return time_on(R"({"preset": "dgx-h100", "nodes": 2)" + more + "}", ops);
  };
  const double usual = with("");
  EXPECT_NEAR(with(R"(, "network": {"latency": "1001us"})") - usual, 2 * 1e-3, 1e-6);
  EXPECT_NEAR(with(R"(, "local": {"latency": "50600ns"})") - usual, 2 * 50e-6, 1e-6) << "by way of the switch";
  EXPECT_NEAR(with(R"(, "network": {"nodes_per_leaf": 1, "spine_latency": "3ms"})") - usual, 2 * 3e-3, 1e-6);
}

// One xGMI link of 64 GB/s, not all seven: no less than 16.8 ms for a GiB; of all eight, all links at once.
TEST(ClusterCosts, two_ranks_of_a_mesh_have_one_link) {
  EXPECT_GE(time_on(R"({"preset": "mi300x"})", "world 8\n0 send f32 268435456 to 1\n1 recv f32 268435456 from 0\n"),
            kGibi / 64e9);
  EXPECT_GE(time_on(R"({"preset": "mi300x"})", "world 8\npg g = 2,5\n2,5 all_reduce f32 268435456 g\n"), kGibi / 64e9);
  EXPECT_LT(time_on(R"({"preset": "mi300x"})", "world 8\nall all_to_all f32 268435456\n"), kGibi / 64e9);
  EXPECT_THROW(step_costs(read_cluster("mi300x")), Error) << "several rings at once";
}

// What NCCL_ALGO does: taken where it is to be had, else NCCL takes something else, and that is told.
TEST(ClusterCosts, algorithms_of_nccl_can_be_forced) {
  const std::array names{std::pair{"ring", "Ring"},
                         std::pair{"tree", "Tree"},
                         std::pair{"nvls", "NVLS"},
                         std::pair{"nvlstree", "NVLSTree"},
                         std::pair{"pat", "PAT"},
                         std::pair{"collnet-direct", "CollNetDirect"},
                         std::pair{"collnet-chain", "CollNetChain"}};
  for (const std::string cluster : {"dgx-a100", "dgx-h100", "dgx-h100:2", "mi300x:2"}) {
    Communicator world;
    for (std::uint64_t rank = 0; rank < read_cluster(cluster).ranks(); ++rank) {
      world.members.emplace_back(static_cast<std::int64_t>(rank));
    }
    for (const auto& [name, as_nccl_has_it] : names) {
      const auto costs = cluster_costs(read_cluster(cluster), find_algorithm(name));
      EXPECT_THAT(costs->name(), ::testing::EndsWith(std::string(", algorithm ") + name));
      std::size_t others = 0;
      for (const OpKind kind : {OpKind::all_reduce, OpKind::all_gather, OpKind::broadcast, OpKind::all_to_all}) {
        const auto cost = costs->collective(world, {kind, 1U << 30});
        ASSERT_TRUE(cost);
        if (kind != OpKind::all_to_all && cost->price.algorithm != as_nccl_has_it) ++others;
      }
      EXPECT_EQ(costs->notes().size(), others) << cluster << ' ' << name;
      EXPECT_EQ(others == 0, std::string(name) == "ring") << cluster << ' ' << name;
    }
  }
  // NCCL's own model: 6.58 ms by trees, and rings no faster than 2 x 15/16 of a GiB over the NICs' 400 GB/s.
  const std::string ops = "world 16\nall all_reduce f32 268435456\n";
  const auto seconds = [&](const char* name) {
    const auto costs = cluster_costs(read_cluster("dgx-h100:2"), find_algorithm(name));
    return static_cast<double>(ends(trace_of(ops), *costs).front()) / kPicosPerSecond;
  };
  EXPECT_NEAR(seconds("tree"), 6.58e-3, .05 * 6.58e-3);
  EXPECT_GE(seconds("ring"), 2 * 15. / 16 * kGibi / 400e9);
  EXPECT_LT(seconds("nvlstree"), seconds("ring"));
  EXPECT_THROW(cluster_costs(read_cluster("dgx-h100"), find_algorithm("bcube")), Error);
}

// Four DGX H100: 480 GB/s of bus bandwidth where InfiniBand reduces, 370 where it does not (NVIDIA, GTC 2025, S72583).
TEST(ClusterCosts, switches_that_reduce_are_faster) {
  const auto bus = [](const std::string& preset, const std::string& sharp) {
    const double seconds =
        time_on(R"({"preset": ")" + preset + R"(", "nodes": 4, "network": {"sharp": )" + sharp + "}}",
                "world 32\nall all_reduce f32 4294967296\n");
    return 2 * 31. / 32 * 16 * kGibi / seconds / 1e9;
  };
  EXPECT_NEAR(bus("dgx-h100", "true"), 480, .07 * 480);
  EXPECT_NEAR(bus("dgx-h100", "false"), 370, .07 * 370);
  EXPECT_GT(bus("dgx-a100", "true"), bus("dgx-a100", "false")) << "without switches in the node as well";
}

}  // namespace
}  // namespace ddx::sim
