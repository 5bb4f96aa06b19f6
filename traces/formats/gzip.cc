#include "traces/formats/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>

namespace ddx::formats {
namespace {

constexpr int kGzipOnly = 16 + MAX_WBITS;
constexpr std::size_t kChunk = 256 * 1024;

class Inflater {
 public:
  Inflater(std::string_view packed, const GzipLimits& limits) : packed_(packed), rest_(packed), limits_(limits) {
    if (::inflateInit2(&state_, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { ::inflateEnd(&state_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  Unpacked run() {
    while (!step()) {
    }
    out_.at = packed_.size() - rest_.size();
    return std::move(out_);
  }

 private:
  // Inflates a chunk; true: this was the end, and out_.end says of what kind.
  bool step();
  bool end(Unpacked::End kind) {
    out_.end = kind;
    return true;
  }
  bool member_ended();
  // By what was read so far, so that what expands too far is seen long before it is all there.
  std::uint64_t most() const {
    const std::uint64_t read = packed_.size() - rest_.size();
    const std::uint64_t by_size = read > limits_.at_most / std::max<std::uint64_t>(limits_.per_byte, 1)
                                      ? limits_.at_most
                                      : read * limits_.per_byte;
    return std::min(limits_.at_most, std::max(limits_.free, by_size));
  }

  std::string_view packed_, rest_;
  const GzipLimits& limits_;
  Unpacked out_;
  z_stream state_ = {};
  std::array<unsigned char, kChunk> chunk_;
};

bool Inflater::step() {
  const auto given = static_cast<uInt>(std::min<std::size_t>(rest_.size(), kChunk));
  // zlib does not write to it, for all that its type says.
  state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
  state_.avail_in = given;
  state_.next_out = chunk_.data();
  state_.avail_out = static_cast<uInt>(chunk_.size());
  const int result = ::inflate(&state_, Z_NO_FLUSH);
  rest_.remove_prefix(given - state_.avail_in);
  const std::size_t got = chunk_.size() - state_.avail_out;
  if (out_.bytes.size() + got > most()) {
    out_.bytes = std::string();
    return end(Unpacked::End::too_big);
  }
  out_.bytes.append(reinterpret_cast<const char*>(chunk_.data()), got);
  if (result == Z_STREAM_END) return member_ended();
  if (result == Z_BUF_ERROR || (result == Z_OK && rest_.empty() && got < chunk_.size())) return end(Unpacked::End::cut);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  return result != Z_OK && end(Unpacked::End::damaged);
}

bool Inflater::member_ended() {
  if (rest_.empty()) return end(Unpacked::End::whole);
  if (!is_gzip(rest_)) {
    // Zeros that fill a block are harmless; anything else is not of this file.
    const bool padding = rest_.find_first_not_of('\0') == std::string_view::npos;
    return end(padding ? Unpacked::End::whole : Unpacked::End::damaged);
  }
  if (::inflateReset(&state_) != Z_OK) throw std::bad_alloc();
  return false;
}

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

Unpacked gunzip(std::string_view packed, const GzipLimits& limits) { return Inflater(packed, limits).run(); }

}  // namespace ddx::formats
