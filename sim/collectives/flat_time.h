// The arithmetic of closed forms: integers that saturate and never wrap.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <string_view>

#include "sim/cluster/cluster.h"
#include "sim/collectives/work.h"

namespace ddx::sim {

constexpr std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::uint64_t>::max() : product;
}
constexpr std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::uint64_t>::max() : sum;
}
// Bytes of one of `parts` like blocks.
constexpr std::uint64_t block(std::uint64_t bytes, std::uint64_t parts) { return bytes / parts + (bytes % parts != 0); }
// Rounds of doubling until `ranks` are reached: 0 for 1.
constexpr std::uint32_t log2_up(std::uint32_t ranks) { return static_cast<std::uint32_t>(std::bit_width(ranks - 1)); }
constexpr std::uint32_t log2_down(std::uint32_t ranks) { return static_cast<std::uint32_t>(std::bit_width(ranks)) - 1; }

class FlatTime {
 public:
  FlatTime(std::string_view algorithm, const LinkSpec& port) : port_(port) { price_.algorithm = algorithm; }

  // `count` messages of `bytes`, each begun when the one before has arrived.
  FlatTime& messages(std::uint64_t count, std::uint64_t bytes) {
    hops(count);
    return transfers(count, bytes);
  }
  // Chunks through `depth` hops, a chunk a time behind the other.
  FlatTime& pipeline(std::uint64_t depth, std::uint64_t chunks, std::uint64_t slot_bytes) {
    hops(depth);
    return transfers(depth == 0 ? 0 : depth + chunks - 1, slot_bytes);
  }
  FlatTime& hops(std::uint64_t count) {
    price_.latency = add(price_.latency, multiply(count, port_.latency));
    return *this;
  }
  // Latency that is not L: `count` waits of `each`.
  FlatTime& waits(std::uint64_t count, Picos each) {
    price_.latency = add(price_.latency, multiply(count, each));
    return *this;
  }
  FlatTime& transfers(std::uint64_t count, std::uint64_t bytes) {
    price_.transfer = add(price_.transfer, multiply(count, transfer_time(bytes, port_.bytes_per_second)));
    price_.rounding = add(price_.rounding, multiply(count, 1));  // half a picosecond each
    return *this;
  }
  // So that total() saturates as well.
  Price price() const {
    Price price = price_;
    price.transfer = std::min(price.transfer, kForever - price.latency);
    return price;
  }

 private:
  static Picos add(Picos a, Picos b) { return a > kForever - b ? kForever : a + b; }
  static Picos multiply(std::uint64_t count, Picos time) {
    const std::uint64_t product = times(count, static_cast<std::uint64_t>(time));
    return product > static_cast<std::uint64_t>(kForever) ? kForever : static_cast<Picos>(product);
  }

  LinkSpec port_;
  Price price_;
};

}  // namespace ddx::sim
