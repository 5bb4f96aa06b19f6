// What every algorithm of the registry comes to, a line of JSON for each kind, number of ranks and size, for
// algorithms_page_test.py to hold against docs/algorithms.md.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/step_simulation.h"

namespace {

using namespace ddx;
using namespace ddx::sim;

void list(const Algorithm& algorithm, OpKind kind, std::uint32_t ranks, std::uint64_t bytes) {
  const Members members = flat_members(ranks);
  if (!algorithm.runs(kind, members)) return;
  const Work work{kind, bytes, DataType::unknown, RedOp::unknown};
  // A byte takes 1 ps, and 1 ns: the latency decides, and hardly does.
  for (const std::uint64_t byte_picos : {1U, 1000U}) {
    const LinkSpec port{1'000'000'000'000 / byte_picos, 1'000'000};
    const auto ends = simulate_steps(algorithm, work, std::vector<Picos>(ranks, 0), Network(ranks, port));
    fmt::print(
        "{{\"algorithm\": \"{}\", \"kind\": \"{}\", \"n\": {}, \"m\": {}, \"S\": {}, \"byte_picos\": {}, \"sent\": {}, "
        "\"closed\": {}, \"steps\": {}}}\n",
        algorithm.name, name_of(kind), ranks, members.per_node, bytes, byte_picos, algorithm.bytes_sent(work, members),
        flat_price(work, ranks, port, algorithm).total(), *std::max_element(ends.begin(), ends.end()));
  }
}

}  // namespace

int main() {
  for (const Algorithm& algorithm : algorithms()) {
    for (const OpKind kind : algorithm.kinds) {
      for (const std::uint32_t ranks : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 12U, 15U, 16U, 24U, 32U, 33U}) {
        for (const std::uint64_t bytes :
             {std::uint64_t{1}, std::uint64_t{1000}, std::uint64_t{1} << 20, std::uint64_t{9'999'991}}) {
          list(algorithm, kind, ranks, bytes);
        }
      }
    }
  }
}
