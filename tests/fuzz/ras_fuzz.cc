// Any bytes as a RAS report in JSON.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "traces/formats/nccl_ras.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddx;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const formats::Importer importer = formats::nccl_ras_json_importer();
  importer.sniff("ras.json", bytes);
  Evidence evidence;
  evidence.inputs.emplace_back();
  evidence.inputs.front().path = "ras.json";
  try {
    importer.read({"ras.json", bytes}, {}, evidence);
  } catch (const Error&) {
    // No report in it: what a reader may say.
  }
  return 0;
}
