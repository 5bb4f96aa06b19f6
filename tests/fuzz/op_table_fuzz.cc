// Any bytes as a table of operations.
#include "traces/formats/op_table.h"

#include "tests/fuzz/importer_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  return ddx::testing::check_importer(ddx::formats::op_table_importer(), "calls.csv", bytes);
}
