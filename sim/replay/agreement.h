// Which operations may be matched with each other. What a signature does not say (an optional that is absent, an
// unknown reduction) agrees with everything.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/model/trace.h"

namespace ddx::sim {

// Two members' calls of one collective, roots aside.
bool collectives_agree(const Signature& a, const Signature& b);
// A send and the receive that it meets.
bool pair_agrees(const Signature& send, const Signature& recv);

// Signatures that are alike in everything that a match compares have one class: equal classes agree without a look at
// the signatures.
class MatchClasses {
 public:
  explicit MatchClasses(const Trace& trace);
  std::uint32_t of(SignatureId id) const { return class_[id.value]; }

 private:
  std::vector<std::uint32_t> class_;
};

}  // namespace ddx::sim
