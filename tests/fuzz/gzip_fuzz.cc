// Any bytes as gzip, within small limits.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "traces/formats/gzip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddx::formats;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  GzipLimits limits;
  limits.free = 1 << 20;
  limits.per_byte = 100;
  const Unpacked out = gunzip(bytes, limits);
  DDX_CHECK(out.at <= size);
  DDX_CHECK(out.bytes.size() <= (1 << 20) + 100 * size);
  DDX_CHECK(out.end != Unpacked::End::too_big || out.bytes.empty());
  return 0;
}
