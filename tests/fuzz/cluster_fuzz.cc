// Cluster files: whatever is read can be described, and what was written reads as the same cluster.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "sim/cluster/cluster_file.h"
#include "sim/cluster/describe.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ddx::sim::Cluster cluster;
  try {
    cluster = ddx::sim::parse_cluster(text, "fuzz.json");
  } catch (const ddx::Error&) {
    return 0;
  }
  if (ddx::sim::describe(cluster).empty()) std::abort();
  const std::string written = ddx::sim::cluster_json(cluster);
  if (ddx::sim::cluster_json(ddx::sim::parse_cluster(written, "written.json")) != written) std::abort();
  return 0;
}
