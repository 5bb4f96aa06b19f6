// The words of a divergence: summary, explanation, evidence, advice.
#pragma once

#include "analyzers/mismatch/divergence.h"

namespace ddx::analyzers {

// `odd` and `reference` are the members whose calls are shown.
Finding divergence_finding(const JobView& job, const Divergence& divergence, std::uint32_t odd,
                           std::uint32_t reference);

}  // namespace ddx::analyzers
