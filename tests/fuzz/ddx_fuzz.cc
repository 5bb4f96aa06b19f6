// Any bytes as a capture file: as they are, and as records behind a header that is right, which mutation alone seldom
// makes.
#include "traces/formats/ddx.h"

#include <algorithm>
#include <cstring>

#include "tests/fuzz/importer_fuzz.h"
#include "traces/capture/record.h"

namespace {

using namespace ddx::capture;

// A small file whose segments hold `records` in turn: the first half those of the ring, the others those of tables.
std::string file_of(std::string_view records) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kFormatVersion;
  header.header_bytes = kHeaderBytes;
  header.record_bytes = kRecordBytes;
  header.segment_bytes = kSegmentBytes;
  header.ring_segments = 4;
  const std::size_t count = std::min(records.size() / kRecordBytes, std::size_t{200});
  header.next_ring = count / 2;
  std::string out(kHeaderBytes, '\0');
  std::memcpy(out.data(), &header, sizeof(header));
  for (const Stream stream : {Stream::ring, Stream::tables}) {
    SegmentHead head{};
    head.stream = static_cast<std::uint32_t>(stream);
    out.append(reinterpret_cast<const char*>(&head), sizeof(head));
    for (std::size_t i = 0; i < count / 2; ++i) {
      const std::size_t from = stream == Stream::ring ? i : count / 2 + i;
      std::string record(records.substr(from * kRecordBytes, kRecordBytes));
      const std::uint32_t serial = serial_of(i);
      std::memcpy(record.data(), &serial, sizeof(serial));
      out += record;
    }
    if (stream == Stream::ring) out.resize(kHeaderBytes + kSegmentBytes, '\0');
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ddx::testing::check_importer(ddx::formats::ddx_importer(), "host-7.ddx", bytes);
  return ddx::testing::check_importer(ddx::formats::ddx_importer(), "host-7.ddx", file_of(bytes));
}
