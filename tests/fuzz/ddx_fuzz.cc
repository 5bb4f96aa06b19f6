// Any bytes as a capture file: as they are, and as records behind a header that is right, which mutation alone seldom
// makes.
#include "traces/formats/ddx.h"

#include <algorithm>
#include <cstring>

#include "tests/fuzz/importer_fuzz.h"
#include "traces/capture/record.h"

namespace {

using ddx::capture::Header;
using ddx::capture::kFormatVersion;
using ddx::capture::kHeaderBytes;
using ddx::capture::kMagic;
using ddx::capture::kRecordBytes;
using ddx::capture::kSegmentBytes;
using ddx::capture::SegmentHead;
using ddx::capture::serial_of;
using ddx::capture::Stream;

constexpr std::size_t kMost = 100;  // records of a stream

// A small file whose segments hold `records`: the first half those of the ring, the others those of tables.
std::string_view file_of(std::string_view records) {
  // Kept: a segment is a mebibyte of zeros, but for its beginning.
  static std::string file(kHeaderBytes + kSegmentBytes + kRecordBytes * (kMost + 1), '\0');
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kFormatVersion;
  header.header_bytes = kHeaderBytes;
  header.record_bytes = kRecordBytes;
  header.segment_bytes = kSegmentBytes;
  header.ring_segments = 4;
  const std::size_t half = std::min(records.size() / kRecordBytes / 2, kMost);
  header.next_ring = half;
  std::memcpy(file.data(), &header, sizeof(header));
  std::size_t from = 0;
  char* at = file.data() + kHeaderBytes;
  for (const Stream stream : {Stream::ring, Stream::tables}) {
    std::memset(at, 0, kRecordBytes * (kMost + 1));
    SegmentHead head{};
    head.stream = static_cast<std::uint32_t>(stream);
    std::memcpy(at, &head, sizeof(head));
    for (std::size_t i = 0; i < half; ++i, from += kRecordBytes) {
      char* record = at + kRecordBytes * (i + 1);
      std::memcpy(record, records.data() + from, kRecordBytes);
      const std::uint32_t serial = serial_of(i);
      std::memcpy(record, &serial, sizeof(serial));
    }
    at += kSegmentBytes;
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ddx::testing::check_importer(ddx::formats::ddx_importer(), "host-7.ddx", bytes);
  return ddx::testing::check_importer(ddx::formats::ddx_importer(), "host-7.ddx", file_of(bytes));
}
