#include "tests/support/ops_text.h"

#include <sstream>
#include <utility>

#include "base/error.h"
#include "traces/formats/ops.h"

namespace ddx::testing {

Evidence evidence_of(const std::string& ops_text) { return formats::read_ops(ops_text, "test.ops"); }

Trace trace_of(const std::string& ops_text) { return evidence_of(ops_text).trace; }

Trace snapshot_of(const std::string& ops_text, const sim::ReplayOptions& options) {
  sim::ReplayResult result = sim::replay(trace_of(ops_text), options);
  if (result.outcome == sim::ReplayResult::Outcome::refused) throw Error("replay refused: " + result.reason);
  return std::move(result.snapshot);
}

std::string text_of(const Trace& trace) {
  std::ostringstream out;
  formats::write_ops(trace, out);
  return out.str();
}

}  // namespace ddx::testing
