#include "sim/calibrate/runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "base/error.h"
#include "sim/calibrate/run_cluster.h"
#include "sim/cluster/cluster_file.h"
#include "sim/collectives/nccl_time.h"

namespace ddx::sim {
namespace {

using testing::HasSubstr;

std::string one_run(const std::string& more,
                    const std::string& rows = "[[1048576, 5, 6, 7], [null, null, null, 200]]") {
  return R"({"runs": [{"id": "x", "gpu": "H100-SXM5-80GB", "gpus_per_node": 8, "nodes": 1, "nranks": 8, "nic": null,
    "collective": "all_reduce", "algo_forced": null, "dtype": "float32", "trust": "A", "source": "a/b:c@d",
    "columns": ["bytes", "time_us", "algbw_GBps", "busbw_GBps"], "rows": )" +
         rows + (more.empty() ? "" : ", " + more) + "}]}";
}

std::string error_of(const std::string& json) {
  try {
    read_runs(json, "runs.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Runs, AreRead) {
  const CollectiveRun run = read_runs(one_run(""), "runs.json").at(0);
  EXPECT_EQ(run.id, "x");
  EXPECT_EQ(run.work.kind, OpKind::all_reduce);
  EXPECT_EQ(run.work.type, DataType::f32);
  EXPECT_EQ(run.placement, (Placement{8, 1, 8, 8}));
  EXPECT_EQ(run.unknown, "");
  EXPECT_THAT(run.bytes, testing::ElementsAre(std::optional<std::uint64_t>(1048576), std::nullopt));
  const auto times = predict(run);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_GT(times[0], 0);
  EXPECT_EQ(times[1], std::nullopt);
}

// A prediction that knew the answer would be none.
TEST(Runs, WhatWasMeasuredChangesNoPrediction) {
  const auto times = predict(read_runs(one_run(""), "").at(0));
  for (const char* rows :
       {"[[1048576, 500000, 0.1, 900], [null, 1, 1, 1]]", "[[1048576, null, null, null], [null, null, null, null]]",
        "[[1048576], []]", "[1048576, null]", R"([{"bytes": 1048576, "time_us": 3}, {}])"}) {
    EXPECT_EQ(predict(read_runs(one_run("", rows), "").at(0)), times) << rows;
  }
  EXPECT_EQ(predict(read_runs(one_run(R"("notes": "fast", "trust2": "C", "rows_in_place": [[1, 2, 3, 4]])"), "").at(0)),
            times);
}

TEST(Runs, MeasuredTimesComeFromEitherColumn) {
  const auto measured = read_measured(
      one_run("", "[[1000000, 5, null, null], [1000000, null, null, 175], [1000000, null, null, 0]]"), "");
  EXPECT_EQ(measured.at(0).at(0), 5);
  // 1 MB * 1.75 at 175 GB/s.
  EXPECT_NEAR(measured.at(0).at(1).value(), 10, 1e-9);
  EXPECT_EQ(measured.at(0).at(2), std::nullopt);
}

TEST(Runs, ThatCannotBeKnownSayWhy) {
  const auto unknown = [](const std::string& gpu, const std::string& nodes, const std::string& kind) {
    return read_runs(R"({"runs": [{"id": "x", "gpu": )" + gpu + R"(, "gpus_per_node": 8, "nodes": )" + nodes +
                         R"(, "collective": ")" + kind + R"(", "rows": [[8]], "columns": ["bytes"]}]})",
                     "")
        .at(0);
  };
  EXPECT_THAT(unknown("null", "1", "all_reduce").unknown, HasSubstr("GPU"));
  EXPECT_THAT(unknown("\"T4\"", "1", "all_reduce").unknown, HasSubstr("GPU"));
  EXPECT_THAT(unknown("\"H100\"", "2", "all_reduce").unknown, HasSubstr("network"));
  EXPECT_THAT(unknown("\"H100\"", "1", "hypercube").unknown, HasSubstr("collective"));
  EXPECT_THAT(predict(unknown("null", "1", "all_reduce")), testing::ElementsAre(std::nullopt));
  EXPECT_EQ(unknown("\"H100\"", "1", "alltoall").work.kind, OpKind::all_to_all);
  EXPECT_EQ(unknown("\"H100\"", "1", "sendrecv").work.kind, OpKind::send);
}

TEST(Runs, WithoutAListAreAnError) {
  EXPECT_THAT(error_of("{"), HasSubstr("runs.json"));
  EXPECT_THAT(error_of("[]"), HasSubstr("'runs'"));
  EXPECT_THAT(error_of(R"({"runs": 1e999})"), HasSubstr("out of range"));
}

// One run that is wrong leaves the others as they are, and says what is wrong with it.
TEST(Runs, ThatAreWrongAreToldOneByOne) {
  const auto times = predict(read_runs(one_run(""), "").at(0));
  for (const auto& [bad, said, rows] : std::vector<std::tuple<std::string, const char*, std::size_t>>{
           {"3", "runs[1]", 0},
           {R"({"id": ["x"], "rows": []})", "runs[1].id", 0},
           {"{}", "runs[1].rows", 0},
           {R"({"rows": [[8], [9]], "nodes": 0})", "runs[1].nodes", 2},
           {R"({"rows": [[8]], "nranks": 16.5})", "runs[1].nranks", 1},
           {R"({"rows": [[8]], "nranks": "16 GPUs"})", "runs[1].nranks", 1},
           {R"({"rows": [[8]], "columns": 3})", "runs[1].columns", 1}}) {
    std::string text = one_run("");
    text.replace(text.rfind("]}"), 2, ", " + bad + "]}");
    const auto runs = read_runs(text, "runs.json");
    ASSERT_EQ(runs.size(), 2U) << bad;
    EXPECT_EQ(predict(runs[0]), times) << bad;
    EXPECT_THAT(runs[1].unknown, HasSubstr(said)) << bad;
    EXPECT_EQ(predict(runs[1]), std::vector<std::optional<double>>(rows)) << bad;
  }
}

TEST(Runs, RowsWithoutANumberOfBytesHaveNoTime) {
  for (const char* row : {"[\"1M\"]", "[-1]", "[1e300]", "[1e19]", "[]", "[null]", "[true]", "[[8]]"}) {
    const auto times = predict(read_runs(one_run("", std::string("[[1048576], ") + row + "]"), "").at(0));
    ASSERT_EQ(times.size(), 2U) << row;
    EXPECT_GT(times[0], 0) << row;
    EXPECT_EQ(times[1], std::nullopt) << row;
  }
}

// As tables have them that went through other tools.
TEST(Runs, NumbersAreTakenAsTheyStand) {
  const auto ranks = [](const std::string& written) {
    return read_runs(R"({"runs": [{"id": 5, "gpu": "H100", "nranks": )" + written + R"(, "rows": []}]})", "").at(0);
  };
  EXPECT_EQ(ranks("8").placement.ranks, 8U);
  EXPECT_EQ(ranks("8.0").placement.ranks, 8U);
  EXPECT_EQ(ranks("\"8\"").placement.ranks, 8U);
  EXPECT_EQ(ranks("8").id, "5");
}

struct Said {
  const char* gpu;
  std::uint32_t gpus;
  const char* nic;
  Fabric fabric;
  std::uint32_t count;
  std::uint64_t gigabits;
};

TEST(RunCluster, NicsAreUnderstoodAsSourcesWriteThem) {
  for (const Said& said : std::initializer_list<Said>{
           {"A100-SXM4-80GB", 8, "EFA v1 4x100 Gb/s (400 Gb/s per node)", Fabric::efa1, 4, 100},
           {"H100-SXM5-80GB", 8, "EFA v2 (32 x 100 Gb/s)", Fabric::efa, 32, 100},
           {"H100-SXM5-80GB", 8, "EFA v2", Fabric::efa, 32, 100},
           {"B200", 8, "EFA v4 8x400 Gb/s", Fabric::efa, 8, 400},
           {"H100-SXM5-80GB", 8, "InfiniBand NDR 8x400 Gb/s", Fabric::infiniband, 8, 400},
           {"GB200", 4, "InfiniBand 4x400 Gb/s per 4-GPU node (CX-7)", Fabric::infiniband, 4, 400},
           {"H100-SXM5-80GB", 8, "GPUDirect-TCPX 4x200 Gb/s", Fabric::tcpx, 4, 200},
           {"H100-SXM5-80GB", 8, "GPUDirect-TCPXO 8x200 Gb/s (A3 Mega)", Fabric::tcpxo, 8, 200},
           {"H100-SXM5-80GB", 8, "RoCE CX-7 8x400 Gb/s", Fabric::roce, 8, 400},
           {"A100-SXM4-40GB", 8, "RoCE on BM.GPU.B4.8", Fabric::roce, 8, 200},
           {"MI300X", 8, "RoCE on BM.GPU.MI300X.8", Fabric::roce, 8, 400},
           {"H100-SXM5-80GB", 1, "RoCE, 4 NICs given to one GPU per node", Fabric::roce, 4, 400},
           {"A100-SXM4-80GB", 8, "InfiniBand HDR", Fabric::infiniband, 8, 200},
           {"H100-SXM5-80GB", 8, "100 GbE", Fabric::tcp, 8, 100}}) {
    const RunCluster found = cluster_of({said.gpu, "", said.nic, 2, said.gpus});
    EXPECT_EQ(found.unknown, "") << said.nic;
    EXPECT_EQ(found.cluster.fabric, said.fabric) << said.nic;
    EXPECT_EQ(found.cluster.nics_per_node, said.count) << said.nic;
    EXPECT_EQ(found.cluster.network.bytes_per_second, said.gigabits * 125'000'000) << said.nic;
  }
}

// Nodes that do not fill their last NVLink domain: what the others have for its ranks goes through its NICs.
TEST(Runs, ASmallLastDomainMayHoldUpAll) {
  for (const std::uint32_t nodes : {19U, 20U, 37U, 40U, 128U}) {
    for (const std::string kind : {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall"}) {
      const std::string json = R"({"runs": [{"id": "x", "gpu": "GB200", "gpus_per_node": 4, "nodes": )" +
                               std::to_string(nodes) + R"(, "nic": "4x400 Gb/s InfiniBand", "collective": ")" + kind +
                               R"(", "rows": [[4096], [67108864], [68719476736]]}]})";
      const auto times = predict(read_runs(json, "").at(0));
      // 4 NICs a node of 50 GB/s; all_to_all: 4 ranks of each.
      const double last = nodes % 18, all = nodes;
      const double share = kind == "alltoall" ? 4 * last : 1;
      const double least = share * (all - last) / all * 68719476736. / (last * 200e9);
      EXPECT_GE(times.at(2).value_or(0), .999999 * least * 1e6) << nodes << ' ' << kind;
    }
  }
}

// A part of a node has the links among its GPUs, whether the others are there or not.
TEST(RunCluster, PartsOfAMesh) {
  const Cluster whole = read_cluster("mi300x");
  for (std::uint32_t ranks = 2; ranks <= 8; ++ranks) {
    const Cluster part = cluster_of({"MI300X", "xGMI 7 links", "", 1, ranks}).cluster;
    EXPECT_EQ(part.local.bytes_per_second, (ranks - 1) * std::uint64_t{64'000'000'000});
    for (const OpKind kind : {OpKind::all_reduce, OpKind::all_gather, OpKind::broadcast, OpKind::all_to_all}) {
      const Work work{kind, std::uint64_t{1} << 30};
      const Price price = nccl_price(part, {ranks, 1, ranks, ranks}, work);
      EXPECT_EQ(price.total(), nccl_price(whole, {ranks, 1, ranks, ranks}, work).total()) << ranks;
    }
    // 2 (n-1)/n of a GiB over n-1 links of 64 GB/s.
    const double least = 2. / ranks * static_cast<double>(1 << 30) / 64e9;
    const Price price = nccl_price(part, {ranks, 1, ranks, ranks}, {OpKind::all_reduce, 1 << 30});
    EXPECT_GE(static_cast<double>(price.total()) / kPicosPerSecond, least) << ranks;
  }
}

TEST(RunCluster, LinksWithinNodes) {
  EXPECT_EQ(cluster_of({"V100-SXM", "NVLink2", "", 1, 8}).cluster.wiring, Wiring::cube_mesh);
  EXPECT_EQ(cluster_of({"V100-SXM3", "NVLink2+NVSwitch1", "", 1, 16}).cluster.wiring, Wiring::switched);
  EXPECT_EQ(cluster_of({"H100-PCIe", "", "", 1, 8}).cluster.wiring, Wiring::pcie);
  EXPECT_EQ(cluster_of({"MI300X", "xGMI 7 links", "", 1, 8}).cluster.wiring, Wiring::mesh);
  EXPECT_EQ(cluster_of({"GB200", "NVLink5 NVL72 (one domain)", "", 18, 4}).cluster.domain_nodes, 18U);
  EXPECT_EQ(cluster_of({"GB200", "NVLink5 NVL36", "", 9, 4}).cluster.domain_nodes, 9U);
  EXPECT_EQ(cluster_of({"H100-SXM5-80GB", "NVLink4+NVSwitch3", "", 1, 8}).cluster.domain_nodes, 1U);
}

TEST(RunCluster, ForcedAlgorithms) {
  Cluster cluster;
  EXPECT_EQ(forced_of("", cluster), NcclForced{});
  EXPECT_EQ(forced_of("Ring", cluster).algorithm, NcclAlgorithm::ring);
  EXPECT_EQ(forced_of("NVLSTree", cluster).algorithm, NcclAlgorithm::nvls_tree);
  EXPECT_EQ(forced_of("Tree/LL128", cluster).protocol, NcclProtocol::ll128);
  EXPECT_EQ(forced_of("Ring with 16 channels", cluster).channels, 16U);
  EXPECT_EQ(forced_of("Ring with 16 channels", cluster).algorithm, NcclAlgorithm::ring);
  EXPECT_FALSE(forced_of("NCCL_NVLS_ENABLE=0 (Ring)", cluster).nvls);
  EXPECT_FALSE(forced_of("no SHARP", cluster).nvls);
  EXPECT_EQ(forced_of("NVLink SHARP", cluster).algorithm, NcclAlgorithm::nvls);
  EXPECT_FALSE(cluster.sharp);
  forced_of("IB SHARP", cluster);
  EXPECT_TRUE(cluster.sharp);
}

}  // namespace
}  // namespace ddx::sim
