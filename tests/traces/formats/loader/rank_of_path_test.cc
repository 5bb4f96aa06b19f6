#include <gtest/gtest.h>

#include "traces/formats/importer.h"

namespace ddx::formats {
namespace {

std::optional<std::int32_t> rank_of(const std::string& path) {
  const auto rank = rank_of_path(path, {});
  return rank ? std::optional(rank->value) : std::nullopt;
}

std::optional<std::int32_t> rank_by(const std::string& pattern, const std::string& path) {
  ImportOptions options;
  options.rank_from = std::regex(pattern);
  const auto rank = rank_of_path(path, options);
  return rank ? std::optional(rank->value) : std::nullopt;
}

struct Named {
  const char* path;
  std::optional<std::int32_t> rank;
};

TEST(RankOfPath, ReadsTheNamesThatToolsWrite) {
  const Named cases[] = {
      {"rank_3", 3},
      {"/tmp/nccl_trace_rank_3", 3},
      {"cache/torch/comm_lib_trace_rank_12", 12},
      {"rank2.log", 2},
      {"RANK-7.txt", 7},
      {"rank=5.out", 5},
      {"fr/3.json", 3},
      {"dump-node7-rank12.pkl", 12},
      {"host5/rank_0.json", 0},
      {"host5_rank_00012.json.gz", 12},
      {"fr/trace_0", 0},
      {"_dump_7", 7},
      {"run/rank_4/stderr.log", 4},
      {"logs/attempt_0/6/stdout.log", 6},
      {"rank_3/dump_2024-05-01.pkl", 3},
      {"out.15", 15},
      {"fr_3_of_8", 3},
      {"dump-3of8.json", 3},
      {"host7_globalrank5", 5},
      {"world_rank_6.log", 6},
  };
  for (const Named& c : cases) EXPECT_EQ(rank_of(c.path), c.rank) << c.path;
}

TEST(RankOfPath, IsNotFooledByOtherNumbers) {
  const Named cases[] = {
      {"train.log", std::nullopt},
      {"2024-05-01.log", std::nullopt},
      {"log_2024-05-01_12-30-59.txt", std::nullopt},
      {"nccl_10.0.0.7.log", std::nullopt},
      {"bench_64MB.log", std::nullopt},
      {"slurm-1234567.out", std::nullopt},
      {"node7.log", std::nullopt},
      {"local_rank_1.log", std::nullopt},
      {"node_rank_1.log", std::nullopt},
      {"mp_rank_00_model_states.pt", std::nullopt},
      {"trace_3_step_100.json", 3},
      {"rank_5_2024-05-01_64MB.json", 5},
      {"", std::nullopt},
      {"/", std::nullopt},
      {"rank_99999999999999999999", std::nullopt},
      {"my.ranks", std::nullopt},
  };
  for (const Named& c : cases) EXPECT_EQ(rank_of(c.path), c.rank) << c.path;
}

TEST(RankOfPath, AFoldersNumberIsAnExperimentsUnlessTheFolderIsTheRanks) {
  const Named cases[] = {
      {"lora_rank16/dump_3", 3},
      {"lora_rank16/train.log", std::nullopt},
      {"low_rank_8/train.log", std::nullopt},
      {"matrix-rank4.log", std::nullopt},
      {"exp_rank16_lr3/dump_2", 2},
      {"exp_rank16/train.log", 16},
      {"rank_5/trace_0.json", 5},
      {"global_rank_5/trace_0.json", 5},
      {"rank_5/fr_rank_3.json", 3},
  };
  for (const Named& c : cases) EXPECT_EQ(rank_of(c.path), c.rank) << c.path;
}

TEST(RankOfPath, NumbersThatCountSeveralRanksOrOtherThings) {
  const Named cases[] = {
      {"ranks0-7", std::nullopt},     {"ranks_0_7.log", std::nullopt},  {"trace_world8.json", std::nullopt},
      {"dump_nranks8", std::nullopt}, {"trace_tp2.json", std::nullopt}, {"train.log.1", std::nullopt},
      {"frank7.log", std::nullopt},   {"pagerank7.json", std::nullopt}, {"tp_rank_2", std::nullopt},
  };
  for (const Named& c : cases) EXPECT_EQ(rank_of(c.path), c.rank) << c.path;
}

TEST(RankOfPath, UsersPatternComesFirst) {
  EXPECT_EQ(rank_by("gpu([0-9]+)", "rank_1/gpu4.json"), 4);
  EXPECT_EQ(rank_by("h([0-9]+)/g", "h12/g3.json"), 12) << "the whole path is searched";
  EXPECT_EQ(rank_by("gpu([0-9]+)", "rank_1.json"), 1) << "a stated rank still counts";
  EXPECT_EQ(rank_by("gpu([0-9]+)", "trace_9.json"), std::nullopt) << "an unstated number does not";
  EXPECT_EQ(rank_by("gpu[0-9]+", "gpu4.json"), std::nullopt) << "no group, nothing to take";
  EXPECT_EQ(rank_by("(gpu[0-9]+)", "gpu4.json"), std::nullopt) << "the group is no number";
}

}  // namespace
}  // namespace ddx::formats
