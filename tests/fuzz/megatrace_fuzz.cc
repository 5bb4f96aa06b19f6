// Any bytes as a call log of Megatrace.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "traces/formats/megatrace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddx;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const formats::Importer importer = formats::megatrace_importer();
  importer.sniff("rank_0.log", bytes);
  Evidence evidence;
  evidence.inputs.emplace_back();
  try {
    importer.read({"rank_0.log", bytes}, {}, evidence);
  } catch (const Error&) {
    // Nothing of the kind in it.
  }
  return 0;
}
