// Any bytes as a profile of torch.profiler.
#include "traces/formats/kineto.h"

#include "tests/fuzz/importer_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  return ddx::testing::check_importer(ddx::formats::kineto_importer(), "trace.json", bytes);
}
