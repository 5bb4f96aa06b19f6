// Under `ddx wrap`: a rank's standard output and error go to wrap by pipes of their own, so that it knows whose lines
// they are (traces/capture/output_offer.h). Without wrap, or where wrap does not answer, nothing changes.
#pragma once

#include <cstdint>

namespace ddx::capture {

// The process is this rank's. Does nothing where it has said so before.
void offer_output(std::int32_t rank);

}  // namespace ddx::capture
