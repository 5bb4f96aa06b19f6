// Gzip (RFC 1952): files are read packed as well as unpacked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ddx::formats {

// How far packed bytes may expand. Deflate can make 1,032 of one; text of traces comes to 10 to 60.
struct GzipLimits {
  std::uint64_t free = std::uint64_t{64} << 20;  // so much in any case
  std::uint64_t per_byte = 256;                  // of the packed file, at every place in it
  std::uint64_t at_most = std::uint64_t{8} << 30;
};

struct Unpacked {
  enum class End {
    whole,
    cut,      // the packed bytes end too early
    damaged,  // what follows is no gzip, or its check sum does not fit
    too_big,  // it expands further than the limits allow
  };
  std::string bytes;  // all up to the end
  End end = End::whole;
  std::uint64_t at = 0;  // offset in the packed bytes where reading ended
};

bool is_gzip(std::string_view bytes);

// All members of the file, one behind the other. Where it is too big, `bytes` is empty.
Unpacked gunzip(std::string_view packed, const GzipLimits& limits = {});

}  // namespace ddx::formats
