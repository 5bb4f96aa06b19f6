// Which algorithm a library takes when nobody asks for one. docs/algorithms.md has the same in words.
#include <bit>
#include <limits>

#include "sim/collectives/algorithm.h"

namespace ddx::sim {

namespace {

constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

// Open MPI's fixed rules for commutative all_reduce (ompi/mca/coll/tuned/coll_tuned_decision_fixed.c,
// github.com/open-mpi/ompi): the first row with more ranks and more bytes than there are. Its "nonoverlapping" is
// binomial, its segmented ring a ring.
struct Rule {
  std::uint64_t ranks_below;
  std::uint64_t bytes_below;
  std::string_view algorithm;
};
constexpr Rule kOpenMpiAllReduce[] = {
    {4, 8, "ring"},
    {4, 4096, "recursive-doubling"},
    {4, 8192, "ring"},
    {4, 16'384, "recursive-doubling"},
    {4, 262'144, "ring"},
    {4, kAny, "rabenseifner"},
    {8, 16, "ring"},
    {8, 8192, "recursive-doubling"},
    {8, kAny, "rabenseifner"},
    {16, 8192, "recursive-doubling"},
    {16, kAny, "rabenseifner"},
    {32, 64, "ring"},
    {32, 4096, "recursive-doubling"},
    {32, kAny, "rabenseifner"},
    {64, 128, "ring"},
    {64, kAny, "rabenseifner"},
    {128, 262'144, "recursive-doubling"},
    {128, kAny, "rabenseifner"},
    {256, 131'072, "binomial"},
    {256, 262'144, "recursive-doubling"},
    {256, kAny, "rabenseifner"},
    {512, 4096, "binomial"},
    {512, kAny, "rabenseifner"},
    {2048, 2048, "binomial"},
    {2048, 16'384, "recursive-doubling"},
    {2048, kAny, "rabenseifner"},
    {4096, 2048, "binomial"},
    {4096, 4096, "ring"},
    {4096, 16'384, "recursive-doubling"},
    {4096, kAny, "rabenseifner"},
    {kAny, 2048, "binomial"},
    {kAny, 16'384, "ring"},
    {kAny, 32'768, "recursive-doubling"},
};

std::string_view open_mpi_all_reduce(std::uint64_t bytes, std::uint32_t ranks) {
  for (const Rule& rule : kOpenMpiAllReduce) {
    if (ranks < rule.ranks_below && bytes < rule.bytes_below) return rule.algorithm;
  }
  return "rabenseifner";
}

// Where a block is so small that latency decides.
bool small_blocks(const Work& work, std::uint32_t ranks) { return work.bytes / ranks < 64 * 1024; }

std::string_view all_reduce(const Work& work, std::uint32_t ranks, Library library) {
  switch (library) {
    case Library::mpi: return open_mpi_all_reduce(work.bytes, ranks);
    case Library::gloo: return "gloo-ring";
    case Library::nccl: break;
  }
  return small_blocks(work, ranks) ? "tree" : "ring";
}

std::string_view all_gather(const Work& work, std::uint32_t ranks, Library library) {
  if (library == Library::nccl) return small_blocks(work, ranks) ? "pat" : "ring";
  return library == Library::mpi && small_blocks(work, ranks) ? "bruck" : "ring";
}

std::string_view reduce_scatter(const Work& work, std::uint32_t ranks, Library library) {
  if (library == Library::nccl) return small_blocks(work, ranks) ? "pat" : "ring";
  return std::has_single_bit(ranks) ? "halving-doubling" : "ring";
}

std::string_view all_to_all(const Work& work, std::uint32_t ranks, Library library) {
  return library == Library::mpi && ranks > 12 && work.bytes / ranks < 200 ? "bruck" : "pairwise";
}

std::string_view name_for(const Work& work, std::uint32_t ranks, Library library) {
  switch (work.kind) {
    case OpKind::all_reduce: return all_reduce(work, ranks, library);
    case OpKind::all_gather: return all_gather(work, ranks, library);
    case OpKind::reduce_scatter: return reduce_scatter(work, ranks, library);
    case OpKind::all_to_all: return all_to_all(work, ranks, library);
    case OpKind::broadcast:
    case OpKind::reduce: return library == Library::nccl ? "ring" : "binomial";
    case OpKind::gather:
    case OpKind::scatter: return "linear";
    case OpKind::barrier: return "dissemination";
    case OpKind::send:
    case OpKind::recv: return ranks == 2 ? "p2p" : "";
    default: return "";
  }
}

}  // namespace

const Algorithm* choose_algorithm(const Work& work, std::uint32_t ranks, Library library) {
  return ranks == 0 ? nullptr : find_algorithm(name_for(work, ranks, library));
}

}  // namespace ddx::sim
