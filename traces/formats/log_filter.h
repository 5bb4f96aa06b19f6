// The filter that most lines of a log do not pass: one look at every byte says which readers a line could interest.
#pragma once

#include <string_view>

namespace ddx::formats {

// Which readers want to see a line, as bits.
inline constexpr unsigned kNothing = 0;
inline constexpr unsigned kNcclInfo = 1U << 0;  // "NCCL INFO": nobody else needs to look
inline constexpr unsigned kNccl = 1U << 1;
inline constexpr unsigned kTorch = 1U << 2;
inline constexpr unsigned kNetwork = 1U << 3;
inline constexpr unsigned kProcess = 1U << 4;
inline constexpr unsigned kProgress = 1U << 5;
inline constexpr unsigned kRas = 1U << 6;
inline constexpr unsigned kTests = 1U << 7;
inline constexpr unsigned kStack = 1U << 8;  // may begin a stack, or what a stack may not be read from
inline constexpr unsigned kAbsent = 1U << 9;
inline constexpr unsigned kDevice = 1U << 10;
inline constexpr unsigned kWorker = 1U << 11;

unsigned interests_of(std::string_view line);

}  // namespace ddx::formats
