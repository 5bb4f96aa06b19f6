#include "sim/cluster/describe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/cluster/cluster_file.h"
#include "sim/cluster/presets.h"

namespace ddx::sim {
namespace {

using testing::HasSubstr;

TEST(Describe, JsonReadsAsTheSameCluster) {
  std::vector<Cluster> clusters{read_cluster("flat:12.5GB/s,20us:4"), read_cluster("gb200-nvl72:36")};
  for (const std::string_view name : preset_names()) clusters.push_back(*preset(name));
  Cluster leaves = *preset("dgx-h100");
  leaves.nodes = 128;
  leaves.nodes_per_leaf = 32;
  leaves.oversubscription = 1.5;
  leaves.spine_latency = 600'000;
  clusters.push_back(leaves);
  for (const Cluster& cluster : clusters) {
    EXPECT_EQ(parse_cluster(cluster_json(cluster), "again"), cluster) << cluster_json(cluster);
  }
}

TEST(Describe, TellsWhatMatters) {
  const std::string text = describe(read_cluster("dgx-h100:32"));
  EXPECT_THAT(text, HasSubstr("32 nodes of 8 ranks, H100 (hopper), nccl"));
  EXPECT_THAT(text, HasSubstr("450GB/s"));
  EXPECT_THAT(text, HasSubstr("8 x 50GB/s"));
  EXPECT_THAT(describe(read_cluster("flat:50GB/s,1us:16")), HasSubstr("16 ranks, each with a port of 50GB/s"));
}

}  // namespace
}  // namespace ddx::sim
