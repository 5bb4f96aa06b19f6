// The filter that most lines of a log do not pass: one look at every byte says which readers a line could interest.
#pragma once

#include <string_view>

namespace ddx::formats {

// Which readers want to see a line, as bits.
enum LineInterest : unsigned {
  kNothing = 0,
  kNcclInfo = 1U << 0,  // "NCCL INFO": nobody else needs to look
  kNccl = 1U << 1,
  kTorch = 1U << 2,
  kNetwork = 1U << 3,
  kProcess = 1U << 4,
  kProgress = 1U << 5,
  kRas = 1U << 6,
  kTests = 1U << 7,
  kStack = 1U << 8,  // may begin a stack, or what a stack may not be read from
};

unsigned interests_of(std::string_view line);

}  // namespace ddx::formats
