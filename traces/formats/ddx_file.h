// CaptureFile: a capture file's bytes as its tables and its calls (traces/capture/record.h). The file may be cut,
// damaged, hostile, or copied while its process went on writing: what is read is checked, and what is no record is
// passed over.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "traces/capture/record.h"

namespace ddx::formats {

class CaptureFile {
 public:
  using RecordBytes = std::array<char, capture::kRecordBytes>;

  static bool is_capture(std::string_view head);

  // `bytes` must outlive this. Throws Error (path, offset) where the header is no header of this version.
  CaptureFile(const std::string& path, std::string_view bytes);

  const capture::Header& header() const { return header_; }
  // Texts of the header, up to their zero.
  std::string host() const;
  std::string program() const;

  // Of tables, by the numbers that records name them by. Absent: there is no such record.
  std::optional<std::string> text(std::uint32_t id) const;
  std::optional<capture::Frame> frame(std::uint32_t id) const {
    return table<capture::Frame>(id, capture::RecordType::frame);
  }
  std::optional<capture::Group> group(std::uint32_t id) const {
    return table<capture::Group>(id, capture::RecordType::group);
  }
  // Global ranks by position; empty: not recorded.
  std::vector<std::int32_t> members(std::uint32_t id, const capture::Group& group) const;

  // Numbers of the ring's records that the file has: [begin, end), of which some may be no records.
  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return end_; }
  // nullopt: not written, or not whole.
  std::optional<RecordBytes> ring(std::uint64_t number) const;

  std::uint64_t cut_bytes() const { return cut_bytes_; }  // behind the last whole segment

  template <class Record>
  static Record as(const RecordBytes& bytes) {
    Record record;
    static_assert(sizeof(record) == sizeof(bytes));
    std::memcpy(&record, bytes.data(), sizeof(record));
    return record;
  }

 private:
  template <class Record>
  std::optional<Record> table(std::uint32_t id, capture::RecordType type) const {
    const auto found = id == 0 ? std::nullopt : record(tables_, id - 1, id - 1);
    if (!found) return std::nullopt;
    auto value = as<Record>(*found);
    if (value.type != static_cast<std::uint8_t>(type)) return std::nullopt;
    return value;
  }
  using Segments = std::unordered_map<std::uint64_t, std::size_t, KeyedHash>;  // number -> offset of its first record
  std::optional<RecordBytes> record(const Segments& segments, std::uint64_t place, std::uint64_t number) const;
  void find_segments();

  std::string_view bytes_;
  capture::Header header_{};
  Segments tables_, ring_;
  std::uint64_t begin_ = 0, end_ = 0;
  std::uint64_t cut_bytes_ = 0;
};

}  // namespace ddx::formats
