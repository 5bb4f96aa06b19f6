// Any bytes as a table of addresses, of environments, and as a launch file.
#include <cstddef>
#include <cstdint>

#include "traces/formats/tables.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddx;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const formats::Importer& importer :
       {formats::address_table_importer(), formats::env_table_importer(), formats::launch_file_importer()}) {
    for (const char* path : {"a.csv", "a.env", "launch.txt", "hostfile", "job.yaml"}) importer.sniff(path, bytes);
    Evidence evidence;
    evidence.inputs.emplace_back();
    evidence.inputs.front().path = "a.csv";
    importer.read({"a.csv", bytes}, {}, evidence);
  }
  return 0;
}
