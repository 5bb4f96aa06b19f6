#include "traces/formats/ddx_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace ddx::formats {
namespace {

using capture::Group;
using capture::Header;
using capture::kFormatVersion;
using capture::kHeaderBytes;
using capture::kMagic;
using capture::kRecordBytes;
using capture::kSegmentBytes;
using capture::kSegmentRecords;
using capture::Members;
using capture::RecordType;
using capture::SegmentHead;
using capture::serial_of;
using capture::Stream;
using capture::Text;

// Segments of a ring that was written over while it was copied may hold what is half old and half new.
constexpr std::uint64_t kUnsafe = 2 * kSegmentRecords;
constexpr std::uint32_t kMostRingSegments = 1 << 16;
constexpr std::uint64_t kMostNumber = std::uint64_t{1} << 56;  // two million years of a call a microsecond
constexpr std::size_t kMostText = 64 << 10;
constexpr std::size_t kMostMembers = 1 << 20;

template <std::size_t kSize>
std::string up_to_zero(const char (&text)[kSize]) {
  return {text, strnlen(text, kSize)};
}

}  // namespace

bool CaptureFile::is_capture(std::string_view head) {
  return head.size() >= sizeof(Header::magic) && std::memcmp(head.data(), kMagic, sizeof(kMagic)) == 0;
}

CaptureFile::CaptureFile(const std::string& path, std::string_view bytes) : bytes_(bytes) {
  if (!is_capture(bytes)) throw Error(path, {.offset = 0, .line = {}}, "expected 'ddxtrace': no capture file");
  if (bytes.size() < kHeaderBytes) {
    throw Error(path, {.offset = bytes.size(), .line = {}}, fmt::format("the header of {} bytes is cut", kHeaderBytes));
  }
  std::memcpy(&header_, bytes.data(), sizeof(header_));
  if (header_.version != kFormatVersion) {
    throw Error(path, {.offset = 8, .line = {}},
                fmt::format("version {} of the capture format, expected {}", header_.version, kFormatVersion));
  }
  if (header_.header_bytes != kHeaderBytes || header_.record_bytes != kRecordBytes ||
      header_.segment_bytes != kSegmentBytes || header_.ring_segments == 0 ||
      header_.ring_segments > kMostRingSegments || header_.next_ring > kMostNumber) {
    throw Error(path, {.offset = 12, .line = {}},
                fmt::format("sizes {}/{}/{}, a ring of {} segments, {} records: expected {}/{}/{} and 1 to {} segments",
                            header_.header_bytes, header_.record_bytes, header_.segment_bytes, header_.ring_segments,
                            header_.next_ring, kHeaderBytes, kRecordBytes, kSegmentBytes, kMostRingSegments));
  }
  find_segments();
  const std::uint64_t capacity = std::uint64_t{header_.ring_segments} * kSegmentRecords;
  end_ = header_.next_ring;
  // A ring of two segments is all unsafe: the tests' own.
  if (end_ > capacity) begin_ = end_ - capacity + std::min(kUnsafe, capacity / 2);
}

void CaptureFile::find_segments() {
  std::size_t at = kHeaderBytes;
  for (; at + kRecordBytes <= bytes_.size(); at += kSegmentBytes) {
    SegmentHead head;
    std::memcpy(&head, bytes_.data() + at, sizeof(head));
    // The first of a number counts: a second one is damage.
    if (head.stream == static_cast<std::uint32_t>(Stream::tables)) tables_.try_emplace(head.number, at + kRecordBytes);
    if (head.stream == static_cast<std::uint32_t>(Stream::ring)) ring_.try_emplace(head.number, at + kRecordBytes);
    if (at + kSegmentBytes > bytes_.size()) cut_bytes_ = bytes_.size() - at;
  }
}

std::string CaptureFile::host() const { return up_to_zero(header_.host); }
std::string CaptureFile::program() const { return up_to_zero(header_.program); }

std::optional<CaptureFile::RecordBytes> CaptureFile::record(const Segments& segments, std::uint64_t place,
                                                            std::uint64_t number) const {
  const auto segment = segments.find(place / kSegmentRecords);
  if (segment == segments.end()) return std::nullopt;
  const std::size_t offset = segment->second + place % kSegmentRecords * kRecordBytes;
  if (offset + kRecordBytes > bytes_.size()) return std::nullopt;
  RecordBytes bytes;
  std::memcpy(bytes.data(), bytes_.data() + offset, bytes.size());
  std::uint32_t serial = 0;
  std::memcpy(&serial, bytes.data(), sizeof(serial));
  if (serial != serial_of(number)) return std::nullopt;
  return bytes;
}

std::optional<CaptureFile::RecordBytes> CaptureFile::ring(std::uint64_t number) const {
  return record(ring_, number % (std::uint64_t{header_.ring_segments} * kSegmentRecords), number);
}

std::optional<std::string> CaptureFile::text(std::uint32_t id) const {
  auto piece = table<Text>(id, RecordType::text);
  if (!piece) return std::nullopt;
  std::string out;
  for (std::uint32_t next = id;;) {
    out.append(piece->piece, std::min<std::size_t>(piece->bytes, sizeof(piece->piece)));
    const bool last = piece->more == 0 || out.size() > kMostText;
    if (last) return out;
    piece = table<Text>(++next, RecordType::text_more);
    if (!piece) return out;  // its writer died in the midst
  }
}

std::vector<std::int32_t> CaptureFile::members(std::uint32_t id, const Group& group) const {
  std::vector<std::int32_t> ranks;
  if (group.size <= 0 || static_cast<std::size_t>(group.size) > kMostMembers || group.first < 0) return ranks;
  const auto size = static_cast<std::size_t>(group.size);
  if (group.step != 0) {
    for (std::size_t i = 0; i < size; ++i) {
      const std::int64_t rank = group.first + static_cast<std::int64_t>(i) * group.step;
      if (rank < 0 || rank > INT32_MAX) return {};
      ranks.push_back(static_cast<std::int32_t>(rank));
    }
    return ranks;
  }
  for (std::uint32_t next = id + 1; ranks.size() < size; ++next) {
    const auto piece = table<Members>(next, RecordType::members);
    if (!piece || piece->count == 0 || piece->count > std::size(piece->ranks)) return {};
    ranks.insert(ranks.end(), piece->ranks, piece->ranks + piece->count);
  }
  if (ranks.size() != size) return {};
  return ranks;
}

}  // namespace ddx::formats
