#include "base/hash.h"

#include <chrono>
#include <exception>
#include <random>

namespace ddx {
namespace {

std::uint64_t drawn() {
  // Without a source of randomness the clock and the addresses of this run have to do.
  static const int kHere = 0;
  auto key = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^
             reinterpret_cast<std::uintptr_t>(&kHere);
  try {
    std::random_device device;
    key ^= std::uint64_t{device()} << 32 | device();
  } catch (const std::exception&) {
  }
  // Few one bits would make a weak factor; the constant is the golden ratio's.
  return (key ^ 0x9e3779b97f4a7c15) | 1;
}

}  // namespace

std::uint64_t hash_key() {
  static const std::uint64_t kKey = drawn();
  return kKey;
}

}  // namespace ddx
