// Calls in flight together on one cluster: what they share makes them slower, and nothing else does. By hand, and as a
// property of every preset.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/cluster/cluster_file.h"
#include "sim/cluster/presets.h"
#include "sim/collectives/port_bound.h"
#include "sim/replay/cluster_costs.h"
#include "sim/replay/reference_replay.h"
#include "tests/support/ops_text.h"

namespace ddx::sim {
namespace {

constexpr std::uint64_t kMebi = std::uint64_t{1} << 20;

// Of the whole run, in seconds.
double time_on(const CostModel& costs, const std::string& ops) {
  ReplayOptions options;
  options.timing.costs = &costs;
  const ReplayResult result = replay(ddx::testing::trace_of(ops), options);
  EXPECT_EQ(result.outcome, ReplayResult::Outcome::completes) << result.reason << ops;
  if (result.rank_end.empty()) return 0;
  return static_cast<double>(*std::max_element(result.rank_end.begin(), result.rank_end.end())) / kPicosPerSecond;
}

double time_on(const std::string& cluster, const std::string& ops) {
  return time_on(*cluster_costs(read_cluster(cluster)), ops);
}

// Sends of a GB, each on a stream of its own.
std::string sends(const std::vector<std::pair<int, int>>& pairs, int world = 16) {
  std::string text = fmt::format("world {}\n", world);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto& [from, to] = pairs[i];
    text += fmt::format(
        "{0} send u8 1000000000 to {1} async stream={2}\n{1} recv u8 1000000000 from {0} async stream={2}\n", from, to,
        i);
  }
  return text + "all host_sync\n";
}

// All_reduces of a GB in groups such as "0,1", all begun at once.
std::string groups(const std::vector<std::string>& members, int world = 16) {
  std::string text = fmt::format("world {}\n", world);
  for (std::size_t i = 0; i < members.size(); ++i) text += fmt::format("pg g{} = {}\n", i, members[i]);
  for (std::size_t i = 0; i < members.size(); ++i) {
    text += fmt::format("{} all_reduce u8 1000000000 g{} async=x{}\n", members[i], i, i);
  }
  return text + "all host_sync\n";
}

constexpr const char* kV100 = R"({"gpu": "V100", "nodes": 2, "ranks_per_node": 8, "network": {"rate": "100Gb/s"}})";

double on_v100(const std::string& ops) { return time_on(*cluster_costs(parse_cluster(kV100, "")), ops); }

// Seven GB over one link of 64 GB/s are 109.4 ms; to seven others they have a link each.
TEST(SharedLinks, a_pair_of_a_mesh_has_its_own_link) {
  const double one = time_on("mi300x:2", sends({{0, 1}}));
  EXPECT_GE(one, 1 / 64.);
  const double seven = time_on("mi300x:2", sends({{0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}}));
  EXPECT_GE(seven, 7 / 64.);
  EXPECT_NEAR(seven, 7 * one, .01 * seven);
  EXPECT_DOUBLE_EQ(time_on("mi300x:2", sends({{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}, {0, 7}})), one);
  EXPECT_DOUBLE_EQ(time_on("mi300x:2", sends({{0, 1}, {1, 0}, {8, 9}, {2, 1}})), one);
  // On an NVLink cube mesh, one or two links of 25 GB/s.
  const double volta = on_v100(sends({{0, 1}}));
  EXPECT_GE(on_v100(sends({{0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}})), 4.9 * volta);
  EXPECT_DOUBLE_EQ(on_v100(sends({{0, 1}, {0, 2}, {1, 0}, {3, 2}})), volta);
}

TEST(SharedLinks, groups_of_a_mesh_share_the_links_between_their_common_members) {
  const double pair = time_on("mi300x:2", groups({"0,1"}));
  EXPECT_DOUBLE_EQ(time_on("mi300x:2", groups({"0,1", "0,2", "1,2", "3,4", "9,10"})), pair);
  EXPECT_NEAR(time_on("mi300x:2", groups({"0,1", "0,1", "0,1"})), 3 * pair, .01 * 3 * pair);
  const double three = time_on("mi300x:2", groups({"0,1,2"}));
  EXPECT_DOUBLE_EQ(time_on("mi300x:2", groups({"0,1,2", "0,3,4", "5,6,7"})), three);
  EXPECT_GE(time_on("mi300x:2", groups({"0,1,2", "0,1,3"})), 1.9 * three);
}

// Every rank sends to the next one, in part of the nodes twice as much: ranks of one place in their nodes are alike.
TEST(SharedLinks, folded_nodes_share_what_every_node_does) {
  for (const std::string cluster : {"mi300x:8", "dgx-h100:8"}) {
    std::string text = "world 64\n";
    for (int rank = 0; rank < 64; ++rank) {
      const int node = rank / 8, next = node * 8 + (rank + 1) % 8, last = node * 8 + (rank + 7) % 8;
      for (int stream = 0; stream <= node % 2; ++stream) {
        text += fmt::format(
            "{0} send u8 1000000000 to {1} async stream={3}\n{0} recv u8 1000000000 from {2} async stream={4}\n", rank,
            next, last, 2 * stream, 2 * stream + 1);
      }
    }
    text +=
        "pg a = 0-7\npg b = 8-15\n0-7 all_gather u8 1000000 a async stream=9\n8-15 all_gather u8 1000000 b async "
        "stream=9\n";
    const auto costs = cluster_costs(read_cluster(cluster));
    const auto run = [&](bool fold) {
      ReplayOptions options;
      options.timing.costs = costs.get();
      options.fold = fold;
      const ReplayResult result = replay(ddx::testing::trace_of(text + "all host_sync\n"), options);
      EXPECT_EQ(result.outcome, ReplayResult::Outcome::completes) << result.reason;
      return result.rank_end;
    };
    const auto folded = run(true);
    EXPECT_EQ(folded, run(false));
    ASSERT_EQ(folded.size(), 64U);
    EXPECT_EQ(folded[16], folded[63 - 8]) << "two even nodes";
    EXPECT_GE(static_cast<double>(folded[24]), 1.9 * static_cast<double>(folded[16])) << "twice as much over each link";
  }
}

// A port to a switch is one link, whoever is on the other side, and out is not in.
TEST(SharedLinks, what_leaves_a_port_shares_it) {
  for (const std::string cluster : {"dgx-a100:2", "dgx-h100:2", "dgx-b200:2", "gb200-nvl72"}) {
    const double one = time_on(cluster, sends({{0, 1}}));
    EXPECT_DOUBLE_EQ(time_on(cluster, sends({{0, 1}, {1, 0}, {2, 3}})), one) << cluster;
    for (const auto& two : {sends({{0, 1}, {0, 1}}), sends({{0, 1}, {0, 2}}), sends({{0, 2}, {1, 2}})}) {
      EXPECT_GE(time_on(cluster, two), 1.85 * one) << cluster << two;
      EXPECT_LE(time_on(cluster, two), 2.0001 * one) << cluster << two;
    }
  }
}

// Four NICs of eight ranks: rank 0 and 1 have one together.
TEST(SharedLinks, what_leaves_a_nic_shares_it) {
  const auto costs =
      cluster_costs(parse_cluster(R"({"preset": "dgx-h100", "nodes": 2, "network": {"nics_per_node": 4}})", ""));
  const double one = time_on(*costs, sends({{0, 8}}));
  EXPECT_DOUBLE_EQ(time_on(*costs, sends({{0, 8}, {2, 10}, {9, 1}})), one);
  EXPECT_GE(time_on(*costs, sends({{0, 8}, {1, 9}})), 2 * 1 / 50.);
  EXPECT_GE(time_on(*costs, sends({{0, 8}, {1, 9}})), 1.9 * one);
  const double group = time_on(*costs, groups({"0,8"}));
  EXPECT_DOUBLE_EQ(time_on(*costs, groups({"0,8", "2,10"})), group);
  EXPECT_GE(time_on(*costs, groups({"0,8", "1,9"})), 1.9 * group);
}

// 838 GB/s of bus bandwidth is what eight B200 reach with NVLS, 232 eight A100.
TEST(SharedLinks, calls_together_reach_no_more_than_one_can) {
  const auto bus = [](const std::string& cluster, int count) {
    std::string text = "world 8\n";
    for (int i = 0; i < count; ++i) text += fmt::format("pg g{} = 0-7\n", i);
    for (int i = 0; i < count; ++i) text += fmt::format("all all_reduce u8 {} g{} async=x{}\n", 256 * kMebi, i, i);
    const double seconds = time_on(cluster, text + "all host_sync\n");
    return 2 * 7. / 8 * count * 256 * static_cast<double>(kMebi) / seconds / 1e9;
  };
  for (const int count : {1, 2, 3, 8, 20}) {
    EXPECT_LE(bus("dgx-b200", count), 838);
    EXPECT_LE(bus("dgx-a100", count), 232);
    EXPECT_LE(bus("mi300x", count), 313);
  }
  EXPECT_GT(bus("dgx-b200", 8), bus("dgx-b200", 1)) << "what one leaves free while its pipeline fills, others take";
}

// What NCCL does of an all_to_all, a gather and a scatter is a group of sends: written out, they take as long.
TEST(SharedLinks, groups_of_sends_take_what_their_collective_takes) {
  constexpr std::uint64_t kPart = 64 * kMebi;
  for (const std::uint32_t nodes : {2U, 3U}) {
    const std::uint32_t ranks = 8 * nodes;
    std::string all = fmt::format("world {}\n", ranks), gather = all, scatter = all;
    for (std::uint32_t a = 0; a < ranks; ++a) {
      for (std::string* text : {&all, &gather, &scatter}) *text += fmt::format("{} group_begin\n", a);
      for (std::uint32_t b = 0; b < ranks; ++b) {
        if (a == b) continue;
        const std::string send = fmt::format("{} send u8 {} to {}\n", a, kPart, b);
        const std::string receive = fmt::format("{} recv u8 {} from {}\n", a, kPart, b);
        all += send + receive;
        if (b == 0) gather += send;
        if (a == 0) gather += receive;
        if (a == 0) scatter += send;
        if (b == 0) scatter += receive;
      }
      for (std::string* text : {&all, &gather, &scatter}) *text += fmt::format("{} group_end\n", a);
    }
    const std::string cluster = fmt::format("dgx-h100:{}", nodes);
    for (const auto& [kind, text] :
         {std::pair{OpKind::all_to_all, all}, std::pair{OpKind::gather, gather}, std::pair{OpKind::scatter, scatter}}) {
      const std::uint64_t count = kind == OpKind::gather ? kPart : kPart * ranks;
      const double price = time_on(cluster, fmt::format("world {}\nall {} u8 {}{}\n", ranks, name_of(kind), count,
                                                        kind == OpKind::all_to_all ? "" : " root=0"));
      EXPECT_NEAR(time_on(cluster, text), price, .04 * price) << cluster << ' ' << name_of(kind);
      EXPECT_GE(price, (ranks - 8) * static_cast<double>(kPart) / 50e9) << "the NIC's rate";
    }
  }
}

// Only a root's port is full of a gather or scatter: to every rank one at once fill what each has to get, and no more.
TEST(SharedLinks, roots_apart_share_nothing) {
  const auto rooted = [](const std::string& kind, const std::vector<int>& roots, int world) {
    std::string text = fmt::format("world {}\n", world);
    for (std::size_t i = 0; i < roots.size(); ++i) text += fmt::format("pg g{} = 0-{}\n", i, world - 1);
    for (std::size_t i = 0; i < roots.size(); ++i) {
      const std::uint64_t bytes = kind == "gather" ? 64 * kMebi : 64 * kMebi * static_cast<std::uint64_t>(world);
      text += fmt::format("all {} u8 {} g{} root={} async=x{}\n", kind, bytes, i, roots[i], i);
    }
    return text + "all host_sync\n";
  };
  for (const std::string kind : {"gather", "scatter"}) {
    const double node = time_on("dgx-h100", rooted(kind, {0}, 8));
    EXPECT_NEAR(time_on("dgx-h100", rooted(kind, {0, 1, 2, 3, 4, 5, 6, 7}, 8)), node, .001 * node) << kind;
    EXPECT_GE(time_on("dgx-h100", rooted(kind, {3, 3, 3}, 8)), 2.7 * node) << kind;
    const double nodes = time_on("dgx-h100:2", rooted(kind, {0}, 16));
    EXPECT_NEAR(time_on("dgx-h100:2", rooted(kind, {0, 1, 5, 8, 15}, 16)), nodes, .001 * nodes) << kind;
    EXPECT_GE(time_on("dgx-h100:2", rooted(kind, {9, 9}, 16)), 1.9 * nodes) << kind;
  }
}

// Of all ranks, `count` at once.
std::string at_once(std::uint64_t world, OpKind kind, std::uint64_t bytes, int count) {
  std::string text = fmt::format("world {}\n", world);
  for (int i = 0; i < count; ++i) text += fmt::format("pg g{} = 0-{}\n", i, world - 1);
  const bool parts = kind == OpKind::all_gather || kind == OpKind::gather;
  for (int i = 0; i < count; ++i) {
    text += fmt::format("all {} u8 {} g{} async=x{}{}\n", name_of(kind), parts ? bytes / world : bytes, i, i,
                        is_rooted(kind) ? " root=0" : "");
  }
  return text + "all host_sync\n";
}

constexpr std::array kKinds{OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter, OpKind::broadcast,
                            OpKind::reduce,     OpKind::all_to_all, OpKind::gather,         OpKind::scatter};

// Alike calls together take what one of their size moves in, at least, and what the ports need for all of them; one
// alone takes its price.
TEST(SharedLinks, alike_calls_together_are_no_faster_than_one_of_their_size) {
  for (const std::string_view name : preset_names()) {
    for (const std::uint32_t nodes : {1U, 2U, 4U}) {
      Cluster cluster = *preset(name);
      cluster.nodes *= nodes;
      if (cluster.library != Library::nccl) continue;
      const std::uint64_t ranks = cluster.ranks();
      const auto costs = cluster_costs(cluster);
      Communicator world;
      std::vector<std::uint32_t> places;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        world.members.emplace_back(static_cast<std::int32_t>(rank));
        places.push_back(rank);
      }
      for (const OpKind kind : kKinds) {
        for (const std::uint64_t bytes : {ranks * kMebi / 4, ranks * 8 * kMebi, ranks * 128 * kMebi}) {
          const auto one = costs->collective(world, {kind, bytes});
          ASSERT_TRUE(one);
          const Picos bound =
              port_bound({kind, bytes}, Network(cluster), places, reduction_of(one->price.algorithm, cluster));
          const std::string where = fmt::format("{}:{} {} {}", name, nodes, name_of(kind), bytes);
          const double alone = static_cast<double>(one->price.total()) / kPicosPerSecond;
          EXPECT_NEAR(time_on(*costs, at_once(ranks, kind, bytes, 1)), alone, 1e-5 * alone) << where;
          for (const int count : {2, 3, 8}) {
            const double together = time_on(*costs, at_once(ranks, kind, bytes, count));
            const auto size = static_cast<std::uint64_t>(count);
            const auto merged = costs->collective(world, {kind, bytes * size});
            EXPECT_GE(together, .97 * static_cast<double>(merged->price.transfer) / kPicosPerSecond) << where << count;
            EXPECT_GE(together * 1.00001, count * static_cast<double>(bound) / kPicosPerSecond) << where << count;
            EXPECT_GE(together * 1.00001, alone) << where << count;
            EXPECT_LE(together, count * alone * 1.00001) << where << count;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ddx::sim
