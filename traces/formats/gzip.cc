#include "traces/formats/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>

namespace ddx::formats {
namespace {

constexpr int kGzipOnly = 16 + MAX_WBITS;
constexpr std::size_t kChunk = 256 * 1024;

struct Stream {
  Stream() {
    if (::inflateInit2(&state, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~Stream() { ::inflateEnd(&state); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  z_stream state = {};
};

std::uint64_t most(std::uint64_t packed, const GzipLimits& limits) {
  const std::uint64_t by_size =
      packed > limits.at_most / std::max<std::uint64_t>(limits.per_byte, 1) ? limits.at_most : packed * limits.per_byte;
  return std::min(limits.at_most, std::max(limits.free, by_size));
}

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

Unpacked gunzip(std::string_view packed, const GzipLimits& limits) {
  const std::uint64_t limit = most(packed.size(), limits);
  Unpacked out;
  Stream stream;
  z_stream& z = stream.state;
  std::string_view rest = packed;
  std::array<unsigned char, kChunk> chunk;
  for (bool done = false; !done;) {
    const auto given = static_cast<uInt>(std::min<std::size_t>(rest.size(), kChunk));
    // zlib does not write to it, for all that its type says.
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
    z.avail_in = given;
    z.next_out = chunk.data();
    z.avail_out = static_cast<uInt>(chunk.size());
    const int result = ::inflate(&z, Z_NO_FLUSH);
    rest.remove_prefix(given - z.avail_in);
    const std::size_t got = chunk.size() - z.avail_out;
    if (got > limit - out.bytes.size()) {
      out.end = Unpacked::End::too_big;
      out.bytes = std::string();
      break;
    }
    out.bytes.append(reinterpret_cast<const char*>(chunk.data()), got);
    if (result == Z_STREAM_END) {
      done = rest.empty();
      if (!done && !is_gzip(rest)) {
        // Zeros that fill a block are harmless; anything else is not of this file.
        const bool padding = rest.find_first_not_of('\0') == std::string_view::npos;
        out.end = padding ? Unpacked::End::whole : Unpacked::End::damaged;
        done = true;
      }
      if (!done && ::inflateReset(&z) != Z_OK) throw std::bad_alloc();
    } else if (result == Z_BUF_ERROR || (result == Z_OK && rest.empty() && got < chunk.size())) {
      out.end = Unpacked::End::cut;
      done = true;
    } else if (result == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (result != Z_OK) {
      out.end = Unpacked::End::damaged;
      done = true;
    }
  }
  out.at = packed.size() - rest.size();
  return out;
}

}  // namespace ddx::formats
