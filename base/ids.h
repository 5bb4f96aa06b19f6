// Strong ids: an index of one table cannot be used on another.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace ddx {

template <class Tag>
struct Id {
  std::uint32_t value = 0;

  constexpr Id() = default;
  constexpr explicit Id(std::size_t v) : value(static_cast<std::uint32_t>(v)) {}
  constexpr auto operator<=>(const Id&) const = default;
};

using CommId = Id<struct CommTag>;            // Trace::communicators
using OpId = Id<struct OpTag>;                // row of a Program
using ProgramId = Id<struct ProgramTag>;      // Trace::programs
using SignatureId = Id<struct SignatureTag>;  // Trace::signatures
using CallSiteId = Id<struct CallSiteTag>;    // Trace::call_sites
using StringId = Id<struct StringTag>;        // Trace::strings
using InputId = Id<struct InputTag>;          // Evidence::inputs

// Ranks that a job may have. Each costs some hundred bytes of bindings, so that a larger bound would let a line of text
// claim many gigabytes.
constexpr std::uint32_t kMaxRanks = 1U << 20;

// A global rank of the job. Signed, since hostile input holds negative ones and a finding must be able to name them.
struct RankId {
  std::int32_t value = 0;

  constexpr RankId() = default;
  // A number that does not fit becomes the nearest that does, which no job has: never the number of another rank. Where
  // the number comes from input, ask from().
  constexpr explicit RankId(std::int64_t v)
      : value(static_cast<std::int32_t>(std::clamp<std::int64_t>(v, INT32_MIN, INT32_MAX))) {}
  // nullopt where the number does not fit.
  static constexpr std::optional<RankId> from(std::int64_t v) {
    if (v < INT32_MIN || v > INT32_MAX) return std::nullopt;
    return RankId(v);
  }
  constexpr auto operator<=>(const RankId&) const = default;
};

}  // namespace ddx

template <class Tag>
struct std::hash<ddx::Id<Tag>> {
  std::size_t operator()(ddx::Id<Tag> id) const noexcept { return std::hash<std::uint32_t>()(id.value); }
};
template <>
struct std::hash<ddx::RankId> {
  std::size_t operator()(ddx::RankId rank) const noexcept { return std::hash<std::int32_t>()(rank.value); }
};
