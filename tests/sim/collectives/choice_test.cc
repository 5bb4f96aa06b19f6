// Which algorithm a library takes: Open MPI's from its fixed rules, gloo's from its documentation, NCCL's defaults for
// a flat network as docs/algorithms.md states them.
#include <gtest/gtest.h>

#include "sim/collectives/algorithm.h"

namespace ddx::sim {
namespace {

constexpr std::uint64_t kKiB = 1024;

std::string_view chosen(Library library, OpKind kind, std::uint32_t ranks, std::uint64_t bytes) {
  const Algorithm* algorithm = choose_algorithm({kind, bytes}, ranks, library);
  return algorithm == nullptr ? "none" : algorithm->name;
}

TEST(Choice, open_mpi_all_reduce_follows_its_fixed_rules) {
  const auto mpi = [](std::uint32_t ranks, std::uint64_t bytes) {
    return chosen(Library::mpi, OpKind::all_reduce, ranks, bytes);
  };
  EXPECT_EQ(mpi(4, 8 * kKiB - 1), "recursive-doubling");
  EXPECT_EQ(mpi(4, 8 * kKiB), "rabenseifner");
  EXPECT_EQ(mpi(8, 8 * kKiB - 1), "recursive-doubling");
  EXPECT_EQ(mpi(15, 8 * kKiB), "rabenseifner");
  EXPECT_EQ(mpi(16, 4 * kKiB - 1), "recursive-doubling");
  EXPECT_EQ(mpi(31, 4 * kKiB), "rabenseifner");
  EXPECT_EQ(mpi(64, 256 * kKiB - 1), "recursive-doubling");
  EXPECT_EQ(mpi(127, 256 * kKiB), "rabenseifner");
  EXPECT_EQ(mpi(128, 128 * kKiB - 1), "binomial");
  EXPECT_EQ(mpi(255, 128 * kKiB), "recursive-doubling");
  EXPECT_EQ(mpi(255, 256 * kKiB), "rabenseifner");
  EXPECT_EQ(mpi(10'000, 40 * kKiB), "rabenseifner");
}

TEST(Choice, gloo_takes_its_ring) {
  EXPECT_EQ(chosen(Library::gloo, OpKind::all_reduce, 8, 1), "gloo-ring");
  EXPECT_EQ(chosen(Library::gloo, OpKind::all_reduce, 300, 1'000'000'000), "gloo-ring");
  EXPECT_EQ(chosen(Library::gloo, OpKind::broadcast, 8, 1), "binomial");
}

TEST(Choice, small_blocks_take_few_steps) {
  EXPECT_EQ(chosen(Library::nccl, OpKind::all_reduce, 8, 8 * 64 * kKiB - 1), "tree");
  EXPECT_EQ(chosen(Library::nccl, OpKind::all_reduce, 8, 8 * 64 * kKiB), "ring");
  EXPECT_EQ(chosen(Library::mpi, OpKind::all_to_all, 16, 16 * 199), "bruck");
  EXPECT_EQ(chosen(Library::mpi, OpKind::all_to_all, 16, 16 * 200), "pairwise");
}

TEST(Choice, what_is_chosen_runs) {
  for (const Library library : {Library::nccl, Library::gloo, Library::mpi}) {
    for (const OpKind kind : {OpKind::all_reduce, OpKind::reduce_scatter, OpKind::all_gather, OpKind::broadcast,
                              OpKind::reduce, OpKind::gather, OpKind::scatter, OpKind::all_to_all, OpKind::barrier}) {
      for (const std::uint32_t ranks : {1U, 2U, 3U, 5U, 8U, 16U, 48U, 100U, 200U, 500U, 1000U, 3000U, 5000U}) {
        for (std::uint64_t bytes = 0; bytes < 1'000'000'000; bytes = 3 * bytes + 1) {
          const Algorithm* algorithm = choose_algorithm({kind, bytes}, ranks, library);
          ASSERT_NE(algorithm, nullptr) << name_of(kind);
          ASSERT_TRUE(algorithm->runs(kind, flat_members(ranks))) << algorithm->name << " " << name_of(kind);
        }
      }
    }
    EXPECT_EQ(chosen(library, OpKind::send, 2, 1), "p2p");
    EXPECT_EQ(chosen(library, OpKind::send, 3, 1), "none");
    EXPECT_EQ(chosen(library, OpKind::compute, 2, 1), "none");
    EXPECT_EQ(chosen(library, OpKind::all_reduce, 0, 1), "none");
  }
}

}  // namespace
}  // namespace ddx::sim
