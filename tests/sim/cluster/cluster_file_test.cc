#include "sim/cluster/cluster_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "sim/cluster/hardware.h"
#include "sim/cluster/presets.h"

namespace ddx::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The words of the error; empty where there was none.
std::string error_of(const std::string& json) {
  try {
    parse_cluster(json, "c.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ClusterFile, SaysEverything) {
  const Cluster cluster = parse_cluster(R"({
    "name": "ours", "nodes": 64, "ranks_per_node": 4, "library": "nccl",
    "gpu": {"name": "X1", "arch": "hopper", "bf16": "500TFLOP/s", "fp8": "1PFLOP/s", "tf32": "250TFLOP/s",
            "fp32": "30TFLOP/s", "memory": "2TB/s"},
    "local": {"rate": "200GB/s", "latency": "700ns", "wiring": "switched", "nvls": true, "domain_nodes": 2},
    "network": {"fabric": "roce", "rate": "200Gb/s", "latency": "3us", "nics_per_node": 2, "rails": false, "sharp": true,
                "nodes_per_leaf": 16, "oversubscription": 2.5, "spine_latency": "500ns"}})",
                                        "c.json");
  EXPECT_EQ(cluster.name, "ours");
  EXPECT_EQ(cluster.nodes, 64U);
  EXPECT_EQ(cluster.ranks_per_node, 4U);
  EXPECT_EQ(cluster.gpu.name, "X1");
  EXPECT_EQ(cluster.gpu.arch, GpuArch::hopper);
  EXPECT_EQ(cluster.gpu.bf16_flops, 500e12);
  EXPECT_EQ(cluster.gpu.fp8_flops, 1e15);
  EXPECT_EQ(cluster.gpu.tf32_flops, 250e12);
  EXPECT_EQ(cluster.gpu.fp32_flops, 30e12);
  EXPECT_EQ(cluster.gpu.memory_bytes_per_second, 2e12);
  EXPECT_EQ(cluster.local, (LinkSpec{200'000'000'000, 700'000}));
  EXPECT_TRUE(cluster.nvls);
  EXPECT_EQ(cluster.domain_nodes, 2U);
  EXPECT_EQ(cluster.fabric, Fabric::roce);
  EXPECT_EQ(cluster.network, (LinkSpec{25'000'000'000, 3'000'000}));
  EXPECT_EQ(cluster.nics_per_node, 2U);
  EXPECT_FALSE(cluster.rails);
  EXPECT_TRUE(cluster.sharp);
  EXPECT_EQ(cluster.nodes_per_leaf, 16U);
  EXPECT_DOUBLE_EQ(cluster.oversubscription, 2.5);
  EXPECT_EQ(cluster.spine_latency, 500'000);
  EXPECT_FALSE(cluster.flat);
}

TEST(ClusterFile, APresetMayBeOverridden) {
  const Cluster cluster =
      parse_cluster(R"({"preset": "dgx-h100", "nodes": 32, "network": {"rate": "200Gb/s"}})", "c.json");
  EXPECT_EQ(cluster.nodes, 32U);
  EXPECT_EQ(cluster.network.bytes_per_second, 25'000'000'000U);
  EXPECT_EQ(cluster.network.latency, preset("dgx-h100")->network.latency);
  EXPECT_EQ(cluster.gpu, preset("dgx-h100")->gpu);
}

TEST(ClusterFile, AKnownGpuBringsItsLinks) {
  const Cluster cluster = parse_cluster(R"({"gpu": "A100", "ranks_per_node": 8})", "c.json");
  EXPECT_EQ(cluster.local.bytes_per_second, 300'000'000'000U);  // 12 NVLinks of 25 GB/s
  EXPECT_FALSE(cluster.nvls);
}

TEST(ClusterFile, ErrorsNameTheKey) {
  EXPECT_THAT(error_of("{"), AllOf(HasSubstr("c.json"), HasSubstr("JSON")));
  EXPECT_THAT(error_of("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(error_of(R"({"nodes": 1e999})"), AllOf(HasSubstr("c.json"), HasSubstr("out of range")));
  EXPECT_THAT(error_of(R"({"preset": "dgx-h100", "nods": 3})"), AllOf(HasSubstr("'nods'"), HasSubstr("nodes")));
  EXPECT_THAT(error_of(R"({"preset": "dgx-x"})"), AllOf(HasSubstr("'preset'"), HasSubstr("dgx-h100")));
  EXPECT_THAT(error_of(R"({"preset": "dgx-h100", "nodes": 0})"), HasSubstr("'nodes'"));
  EXPECT_THAT(error_of(R"({"preset": "dgx-h100", "nodes": 1.5})"), HasSubstr("'nodes'"));
  EXPECT_THAT(error_of(R"({"preset": "dgx-h100", "nodes": -1})"), HasSubstr("'nodes'"));
  EXPECT_THAT(error_of(R"({"preset": "dgx-h100", "nodes": 1000000})"),
              AllOf(HasSubstr("'nodes'"), HasSubstr("ranks in all")));
  EXPECT_THAT(error_of(R"({"preset": "dgx-h100", "network": {"rate": "50"}})"),
              AllOf(HasSubstr("'network.rate'"), HasSubstr("'50'"), HasSubstr("400Gb/s")));
  EXPECT_THAT(error_of(R"({"preset": "dgx-h100", "network": {"rate": 50}})"),
              AllOf(HasSubstr("'network.rate'"), HasSubstr("quotes")));
  EXPECT_THAT(error_of(R"({"preset": "dgx-h100", "network": {"speed": "50GB/s"}})"), HasSubstr("'network.speed'"));
  EXPECT_THAT(error_of(R"({"preset": "dgx-h100", "network": {"fabric": "token ring"}})"),
              AllOf(HasSubstr("'network.fabric'"), HasSubstr("infiniband")));
  EXPECT_THAT(error_of(R"({"gpu": "H101"})"), AllOf(HasSubstr("'gpu'"), HasSubstr("H100")));
  EXPECT_THAT(error_of(R"({"gpu": {"name": "X"}})"), HasSubstr("'gpu.arch': missing"));
}

TEST(ClusterFile, AKeyStandsOnce) {
  EXPECT_THAT(error_of(R"({"preset": "dgx-h100", "nodes": 4, "nodes": 5})"), HasSubstr("'nodes' stands twice"));
  EXPECT_THAT(error_of(R"({"preset": "dgx-h100", "local": {}, "nodes": 4, "local": {}})"), HasSubstr("'local' stands"));
  EXPECT_THAT(error_of(R"({"preset": "dgx-h100", "network": {"rate": "1GB/s", "rails": true, "rate": "1GB/s"}})"),
              HasSubstr("'rate' stands twice"));
  // In two objects it is two keys.
  EXPECT_EQ(error_of(R"({"preset": "dgx-h100", "local": {"rate": "400GB/s"}, "network": {"rate": "40GB/s"}})"), "");
}

TEST(ClusterFile, WithoutANameItIsItsFile) {
  EXPECT_EQ(parse_cluster(R"({"gpu": "H100", "ranks_per_node": 8})", "c.json").name, "c.json");
  EXPECT_EQ(parse_cluster(R"({"preset": "tcp"})", "c.json").name, "tcp");
  EXPECT_THAT(error_of(R"({"preset": "tcp", "name": ""})"), HasSubstr("'name'"));
}

TEST(ClusterFile, WhatIsMissingIsNamed) {
  EXPECT_THAT(error_of("{}"), HasSubstr("'gpu'"));
  EXPECT_THAT(error_of(R"({"gpu": "H100", "nodes": 2})"), HasSubstr("'network'"));
  EXPECT_THAT(error_of(R"({"gpu": "H100", "nodes": 2, "network": {"fabric": "roce"}})"), HasSubstr("'network.rate'"));
  EXPECT_THAT(error_of(R"({"library": "gloo", "ranks_per_node": 2})"), HasSubstr("'local'"));
  EXPECT_THAT(error_of(R"({"library": "gloo", "ranks_per_node": 2, "local": {}})"), HasSubstr("'local.rate'"));
}

TEST(ClusterFile, ContradictionsAreNamed) {
  EXPECT_THAT(error_of(R"({"flat": "50GB/s,1us", "preset": "tcp"})"), AllOf(HasSubstr("'preset'"), HasSubstr("flat")));
  EXPECT_THAT(error_of(R"({"flat": "50GB/s,1us", "network": {}})"), HasSubstr("'network'"));
  EXPECT_THAT(error_of(R"({"preset": "dgx-a100", "local": {"nvls": true}})"), HasSubstr("'local.nvls'"));
  EXPECT_THAT(error_of(R"({"preset": "gb200-nvl72", "nodes": 20})"), AllOf(HasSubstr("'nodes'"), HasSubstr("18")));
  EXPECT_THAT(error_of(R"({"preset": "dgx-h100", "network": {"oversubscription": 2}})"),
              HasSubstr("'network.nodes_per_leaf'"));
  EXPECT_THAT(error_of(R"({"preset": "dgx-h100", "network": {"nodes_per_leaf": 4, "oversubscription": 0.5}})"),
              HasSubstr("'network.oversubscription'"));
}

// As vendors print them, with both directions; with bytes for bits; with all NICs of a node as one.
// A link of 64 GB/s to each other one of the node, of a switch the port.
TEST(ClusterFile, FewerGpusOfAMeshHaveFewerLinks) {
  for (const char* start : {R"({"gpu": "MI300X")", R"({"preset": "mi300x")"}) {
    const auto rate = [&](int ranks) {
      return parse_cluster(start + (", \"ranks_per_node\": " + std::to_string(ranks)) + "}", "").local.bytes_per_second;
    };
    EXPECT_EQ(rate(2), 64'000'000'000) << start;
    EXPECT_EQ(rate(3), 128'000'000'000) << start;
    EXPECT_EQ(rate(8), 448'000'000'000) << start;
  }
  EXPECT_EQ(parse_cluster(R"({"preset": "dgx-h100", "ranks_per_node": 2})", "").local.bytes_per_second,
            450'000'000'000);
  EXPECT_THAT(error_of(R"({"gpu": "MI300X", "ranks_per_node": 2, "local": {"rate": "448GB/s"}})"),
              AllOf(HasSubstr("local.rate"), HasSubstr("64GB/s"), HasSubstr("1 other")));
}

TEST(ClusterFile, RatesAboveTheStatedHardwareAreRefused) {
  EXPECT_THAT(error_of(R"({"preset": "dgx-h100", "local": {"rate": "900GB/s"}})"),
              AllOf(HasSubstr("'local.rate'"), HasSubstr("900GB/s"), HasSubstr("450GB/s")));
  EXPECT_THAT(error_of(R"({"gpu": {"name": "NVIDIA A100-SXM4-80GB", "arch": "ampere"}, "ranks_per_node": 8,
                           "local": {"rate": "301GB/s"}})"),
              AllOf(HasSubstr("'local.rate'"), HasSubstr("A100")));
  EXPECT_THAT(error_of(R"({"preset": "dgx-h100", "network": {"rate": "400GB/s"}})"),
              AllOf(HasSubstr("'network.rate'"), HasSubstr("100GB/s"), HasSubstr("nics_per_node")));
  EXPECT_THAT(error_of(R"({"preset": "dgx-a100", "network": {"fabric": "efa1", "rate": "200Gb/s"}})"),
              AllOf(HasSubstr("'network.rate'"), HasSubstr("efa1")));
  EXPECT_EQ(error_of(R"({"preset": "dgx-h100", "local": {"rate": "450GB/s"}, "network": {"rate": "800Gb/s"}})"), "");
  EXPECT_EQ(error_of(R"({"gpu": {"name": "own", "arch": "hopper"}, "ranks_per_node": 8, "local": {"rate": "2TB/s"}})"),
            "");
}

TEST(Presets, AreAllRead) {
  for (const std::string_view name : preset_names()) {
    const Cluster cluster = read_cluster(std::string(name));
    EXPECT_EQ(cluster.name, name);
    EXPECT_GT(cluster.network.bytes_per_second, 0U) << name;
    EXPECT_EQ(cluster, parse_cluster(R"({"preset": ")" + std::string(name) + "\"}", "c.json")) << name;
  }
}

// Figures that the vendors publish.
TEST(Presets, HavePublishedFigures) {
  const Cluster h100 = read_cluster("dgx-h100:32");
  EXPECT_EQ(h100.ranks(), 256U);
  EXPECT_EQ(h100.local.bytes_per_second, 450'000'000'000U);
  EXPECT_EQ(h100.network.bytes_per_second * h100.nics_per_node, 400'000'000'000U);
  EXPECT_EQ(read_cluster("dgx-a100").network.bytes_per_second, 25'000'000'000U);
  EXPECT_EQ(read_cluster("gb200-nvl72").ranks(), 72U);
  EXPECT_EQ(read_cluster("mi300x").local.bytes_per_second, 448'000'000'000U);  // 7 links of 64
  EXPECT_EQ(read_cluster("tcp:4").library, Library::gloo);
}

TEST(Presets, NodesMustFit) {
  EXPECT_EQ(read_cluster("gb200-nvl72:36").nodes, 36U);
  EXPECT_EQ(read_cluster("gb200-nvl72:2").nodes, 2U);
  for (const char* text : {"dgx-h100:0", "dgx-h100:", "dgx-h100:x", "dgx-h100:-1", "dgx-h100:99999999",
                           "gb200-nvl72:20", "dgx-h100:1:2", "no-such-file"}) {
    EXPECT_THROW(read_cluster(text), Error) << text;
  }
}

TEST(Flat, HasOnePortARank) {
  const Cluster cluster = read_cluster("flat:50GB/s,1us:16");
  EXPECT_TRUE(cluster.flat);
  EXPECT_EQ(cluster.ranks(), 16U);
  EXPECT_EQ(cluster.network, (LinkSpec{50'000'000'000, 1'000'000}));
  EXPECT_EQ(parse_cluster(R"({"flat": "50GB/s,1us", "nodes": 16})", "c.json"), cluster);
  for (const char* text : {"50GB/s", "50GB/s;1us", ",", "1us,50GB/s", ""}) EXPECT_THROW(flat(text), Error) << text;
}

// The page's example, and every name that it must list.
TEST(ClustersPage, IsRight) {
  std::ifstream file(DDX_SOURCE_DIR "/docs/clusters.md");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string page = text.str();
  const std::size_t begin = page.find("```json") + 7;
  const Cluster cluster = parse_cluster(page.substr(begin, page.find("```", begin) - begin), "docs/clusters.md");
  EXPECT_EQ(cluster.nodes_per_leaf, 32U);
  EXPECT_EQ(cluster.gpu.name, "H100");
  for (const std::string_view name : preset_names()) EXPECT_THAT(page, HasSubstr("`" + std::string(name) + "`"));
  for (const GpuModel& model : gpu_models()) EXPECT_THAT(page, HasSubstr(std::string(model.name)));
}

TEST(GpuModels, AreFoundInDecoratedNames) {
  EXPECT_EQ(find_gpu_model("NVIDIA H100-SXM5-80GB")->name, "H100");
  EXPECT_EQ(find_gpu_model("GB200")->name, "GB200");  // not B200
  EXPECT_EQ(find_gpu_model("GH200")->name, "GH200");
  EXPECT_EQ(find_gpu_model("AMD Instinct MI300X")->name, "MI300X");
  EXPECT_EQ(find_gpu_model("T4"), nullptr);
}

}  // namespace
}  // namespace ddx::sim
