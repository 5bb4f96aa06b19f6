// Any bytes as a table of runs, read and judged.
#include <cstddef>
#include <cstdint>

#include "analyzers/scaling/scaling.h"
#include "base/error.h"
#include "traces/formats/scaling_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddx;
  Diagnostics diagnostics;
  try {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    analyzers::judge_scaling(formats::read_scaling_table("a.csv", bytes, diagnostics));
  } catch (const Error&) {
    // No table.
  }
  return 0;
}
