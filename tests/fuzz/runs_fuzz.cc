// Files of collective runs: what is read is predicted, one number or none for each row, none of them negative.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "sim/calibrate/runs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const ddx::sim::CollectiveRun& run : ddx::sim::read_runs(text, "fuzz.json")) {
      const auto times = ddx::sim::predict(run);
      if (times.size() != run.bytes.size()) std::abort();
      for (const auto& time : times) {
        if (time && !(*time >= 0 && std::isfinite(*time))) std::abort();
      }
    }
    static_cast<void>(ddx::sim::read_measured(text, "fuzz.json"));
  } catch (const ddx::Error&) {
    return 0;
  }
  return 0;
}
