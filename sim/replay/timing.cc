#include "sim/replay/timing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sim/collectives/port_bound.h"

namespace ddx::sim {
namespace {

std::optional<std::uint64_t> product(std::optional<std::uint64_t> count, std::optional<std::uint64_t> factor) {
  if (!count || !factor) return std::nullopt;
  if (*factor != 0 && *count > std::numeric_limits<std::uint64_t>::max() / *factor) return std::nullopt;
  return *count * *factor;
}

std::optional<std::uint64_t> bytes_in(const Signature& signature) {
  return product(signature.count_in, element_bytes(signature.type_in));
}

std::optional<std::uint64_t> bytes_out(const Signature& signature) {
  const DataType type = signature.type_out == DataType::unknown ? signature.type_in : signature.type_out;
  return product(signature.count_out, element_bytes(type));
}

bool moves_nothing(OpKind kind) {
  return kind == OpKind::barrier || kind == OpKind::new_group || kind == OpKind::split_group;
}

std::optional<std::uint64_t> work_bytes(const Signature& signature, std::uint32_t members) {
  if (moves_nothing(signature.kind)) return 0;
  switch (signature.kind) {
    case OpKind::all_gather:
    case OpKind::gather:
      if (const auto total = bytes_out(signature); total && signature.kind == OpKind::all_gather) return total;
      return product(bytes_in(signature), members);
    case OpKind::scatter: return product(bytes_out(signature), members);
    default: break;
  }
  const auto input = bytes_in(signature);
  return input ? input : bytes_out(signature);
}

// Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014.
std::uint64_t split_mix(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

}  // namespace

// The sum of three even draws of [-1, 1] has a variance of one, and reaches three.
std::int64_t noise_at(std::uint64_t seed, std::int32_t rank, std::uint32_t op) {
  constexpr std::int64_t kMillion = 1'000'000;
  std::uint64_t state = seed;
  state = split_mix(state) ^ static_cast<std::uint32_t>(rank);
  state = split_mix(state) ^ op;
  std::int64_t sum = 0;
  for (int i = 0; i < 3; ++i) sum += static_cast<std::int64_t>(split_mix(state) % (2 * kMillion + 1)) - kMillion;
  return sum;
}

ResourceUse use_of(std::uint16_t kind, double bytes, Picos time, double bytes_per_second) {
  if (time <= 0 || bytes <= 0 || bytes_per_second <= 0) return {kind, 0};
  const double part = bytes / bytes_per_second / (static_cast<double>(time) / static_cast<double>(kPicosPerSecond));
  const double parts =
      std::min(std::round(part * static_cast<double>(kWholeResource)), static_cast<double>(kMostOfResource));
  return {kind, std::max<std::uint64_t>(1, static_cast<std::uint64_t>(parts))};
}

std::optional<Cost> CostModel::collective(const Communicator& communicator, const Work& work) const {
  auto cost = cost_of(communicator, work);
  if (!cost || communicator.size() < 2) return cost;
  refuse_below_bound(work, communicator.size(), cost->price.algorithm, cost->price.total(),
                     bound(communicator.members, work, cost->price), cost->price.rounding);
  return cost;
}

std::optional<Cost> CostModel::transfer(RankId from, RankId to, std::uint64_t bytes) const {
  auto cost = cost_of(from, to, bytes);
  if (!cost || from == to) return cost;
  const Work work{OpKind::send, bytes, DataType::unknown, RedOp::unknown};
  refuse_below_bound(work, 2, cost->price.algorithm, cost->price.total(),
                     bound(std::array{from, to}, work, cost->price), cost->price.rounding);
  return cost;
}

std::optional<Work> work_of(const Signature& signature, std::uint32_t members) {
  const auto bytes = work_bytes(signature, members);
  if (!bytes) return std::nullopt;
  return Work{signature.kind, *bytes, signature.type_in, signature.redop};
}

std::optional<std::uint64_t> bytes_of(const Signature& signature) {
  const auto input = bytes_in(signature);
  return input ? input : bytes_out(signature);
}

}  // namespace ddx::sim
