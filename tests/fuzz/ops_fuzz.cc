// The ops notation: whatever is read can be written, and what was written is read as the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>

#include "base/error.h"
#include "traces/formats/ops.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ddx::formats::ImportOptions options;
  options.max_ops_per_file = 20'000;
  ddx::Evidence evidence;
  try {
    evidence = ddx::formats::read_ops(text, "fuzz.ops", options);
  } catch (const ddx::Error&) {
    return 0;
  }
  std::ostringstream written;
  ddx::formats::write_ops(evidence.trace, written);
  options.max_ops_per_file = 2'000'000;
  const ddx::Evidence again = ddx::formats::read_ops(written.str(), "written.ops", options);
  std::ostringstream twice;
  ddx::formats::write_ops(again.trace, twice);
  if (twice.str() != written.str()) std::abort();
  return 0;
}
