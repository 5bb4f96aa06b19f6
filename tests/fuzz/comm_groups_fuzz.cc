// Any bytes as the groups of Chakra traces in JSON.
#include "traces/formats/comm_groups.h"

#include "tests/fuzz/importer_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  return ddx::testing::check_importer(ddx::formats::comm_groups_importer(), "comm_group.json", bytes);
}
