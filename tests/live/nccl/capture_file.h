// Reads a capture file as record.h lays it out, for tests that hold it against what really happened.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "traces/capture/record.h"

namespace ddx::nccl_test {

struct CaptureFile {
  struct CallRecord {
    std::uint64_t id;  // 1 + number
    capture::Call call;
    std::vector<capture::More> more;
  };
  capture::Header header{};
  std::map<std::uint64_t, std::string> texts;
  std::map<std::uint64_t, capture::Frame> frames;
  std::map<std::uint64_t, capture::Group> groups;
  std::vector<CallRecord> calls;  // in order of their records
  std::vector<capture::Event> events;

  std::string text(std::uint32_t id) const {
    const auto found = texts.find(id);
    return found == texts.end() ? "" : found->second;
  }
  // Of a call that no kind stands for.
  std::string name(const CallRecord& record) const {
    for (const capture::More& more : record.more) {
      if (more.field == static_cast<std::uint8_t>(capture::Field::name))
        return text(static_cast<std::uint32_t>(more.values[0]));
    }
    return "";
  }
};

inline CaptureFile read_capture(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  CaptureFile file;
  if (bytes.size() < capture::kHeaderBytes) throw std::runtime_error(path + ": no header");
  std::memcpy(&file.header, bytes.data(), sizeof(file.header));
  if (std::memcmp(file.header.magic, capture::kMagic, sizeof(capture::kMagic)) != 0)
    throw std::runtime_error(path + ": no capture");
  // Segments by stream and number; the tests' rings never come round.
  std::map<std::pair<std::uint32_t, std::uint32_t>, const char*> segments;
  for (std::size_t at = capture::kHeaderBytes; at + capture::kSegmentBytes <= bytes.size();
       at += capture::kSegmentBytes) {
    capture::SegmentHead head{};
    std::memcpy(&head, bytes.data() + at, sizeof(head));
    segments[{head.stream, head.number}] = bytes.data() + at;
  }
  const auto each = [&](capture::Stream stream, std::uint64_t end, const auto& use) {
    for (std::uint64_t number = 0; number < end; ++number) {
      const auto found = segments.find(
          {static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(number / capture::kSegmentRecords)});
      if (found == segments.end()) throw std::runtime_error(path + ": a segment is missing");
      const char* record = found->second + (number % capture::kSegmentRecords + 1) * capture::kRecordBytes;
      std::uint32_t serial = 0;
      std::memcpy(&serial, record, sizeof(serial));
      if (serial == capture::serial_of(number)) use(number + 1, static_cast<capture::RecordType>(record[4]), record);
    }
  };
  std::uint64_t text = 0;
  each(capture::Stream::tables, file.header.next_table,
       [&](std::uint64_t id, capture::RecordType type, const char* record) {
         if (type == capture::RecordType::text || type == capture::RecordType::text_more) {
           capture::Text piece{};
           std::memcpy(&piece, record, sizeof(piece));
           if (type == capture::RecordType::text) text = id;
           file.texts[text].append(piece.piece, piece.bytes);
         } else if (type == capture::RecordType::frame) {
           std::memcpy(&file.frames[id], record, sizeof(capture::Frame));
         } else if (type == capture::RecordType::group) {
           std::memcpy(&file.groups[id], record, sizeof(capture::Group));
         }
       });
  each(capture::Stream::ring, file.header.next_ring,
       [&](std::uint64_t id, capture::RecordType type, const char* record) {
         if (type == capture::RecordType::call) {
           CaptureFile::CallRecord call{id, {}, {}};
           std::memcpy(&call.call, record, sizeof(call.call));
           file.calls.push_back(call);
         } else if (type == capture::RecordType::more) {
           capture::More more{};
           std::memcpy(&more, record, sizeof(more));
           if (!file.calls.empty()) file.calls.back().more.push_back(more);
         } else if (type == capture::RecordType::event) {
           capture::Event event{};
           std::memcpy(&event, record, sizeof(event));
           file.events.push_back(event);
         }
       });
  return file;
}

}  // namespace ddx::nccl_test
