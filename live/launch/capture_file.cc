#include "live/launch/capture_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace ddx::live {
namespace {

using capture::Call;
using capture::CallKind;
using capture::Event;
using capture::EventCode;
using capture::Group;
using capture::Header;
using capture::kAsync;
using capture::kFailed;
using capture::kFormatVersion;
using capture::kHeaderBytes;
using capture::kMagic;
using capture::kNoEnd;
using capture::kRecordBytes;
using capture::kSegmentBytes;
using capture::kSegmentRecords;
using capture::Members;
using capture::RecordType;
using capture::SegmentHead;
using capture::serial_of;
using capture::Stream;
using capture::Text;

// Bounds on what a broken or hostile file can make this do.
constexpr std::size_t kMostOpen = 4096;
constexpr std::size_t kMostMissing = 1024;
constexpr int kPatience = 10;  // looks at a record that its writer never finished
constexpr std::uint32_t kMostSegments = 16384;
constexpr std::uint64_t kMostAtOnce = std::uint64_t{1} << 22;
constexpr int kMostRanks = 1 << 20;

bool read_at(int file, void* into, std::size_t size, std::uint64_t offset) {
  return pread(file, into, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

template <class Record>
Record as(const unsigned char (&bytes)[kRecordBytes]) {
  Record record;
  std::memcpy(&record, bytes, sizeof(record));
  return record;
}

bool is_open(const Call& call) { return call.end == 0 && (call.flags & (kNoEnd | kFailed)) == 0; }

}  // namespace

std::unique_ptr<CaptureFile> CaptureFile::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return nullptr;
  std::unique_ptr<CaptureFile> capture(new CaptureFile(path, file));
  return capture->read_header() ? std::move(capture) : nullptr;
}

CaptureFile::~CaptureFile() { ::close(file_); }

bool CaptureFile::read_header() {
  Header header{};
  if (!read_at(file_, &header, sizeof(header), 0)) return false;
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 || header.version != kFormatVersion) return false;
  if (header.segment_bytes != kSegmentBytes || header.record_bytes != kRecordBytes) return false;
  if (header.ring_segments == 0 || header.ring_segments > kMostSegments) return false;
  header.host[sizeof(header.host) - 1] = '\0';
  header.program[sizeof(header.program) - 1] = '\0';
  header_ = header;
  return true;
}

void CaptureFile::refresh() {
  if (!read_header()) return;
  find_segments();
  read_new();
  check_open();
}

void CaptureFile::find_segments() {
  struct stat about {};
  if (fstat(file_, &about) != 0 || about.st_size < static_cast<off_t>(kHeaderBytes)) return;
  const std::uint64_t count = std::min<std::uint64_t>(
      (static_cast<std::uint64_t>(about.st_size) - kHeaderBytes) / kSegmentBytes, kMostSegments);
  for (; segments_ < count; ++segments_) unused_.push_back(kHeaderBytes + segments_ * kSegmentBytes);
  // One that two threads made at once may never be given to a stream: those behind it do not wait for it.
  std::erase_if(unused_, [this](std::uint64_t place) {
    SegmentHead head{};
    if (!read_at(file_, &head, sizeof(head), place)) return false;
    const auto stream = static_cast<Stream>(head.stream);
    if (stream == Stream::unused) return false;
    (stream == Stream::ring ? ring_ : tables_)[head.number] = place;
    return true;
  });
}

bool CaptureFile::record(Stream stream, std::uint64_t number, void* into) const {
  auto segment = static_cast<std::uint32_t>(number / kSegmentRecords);
  if (stream == Stream::ring) segment = static_cast<std::uint32_t>(number / kSegmentRecords % header_.ring_segments);
  const auto& places = stream == Stream::ring ? ring_ : tables_;
  const auto place = places.find(segment);
  if (place == places.end()) return false;
  if (!read_at(file_, into, kRecordBytes, place->second + (number % kSegmentRecords + 1) * kRecordBytes)) return false;
  std::uint32_t serial = 0;
  std::memcpy(&serial, into, sizeof(serial));
  return serial == serial_of(number);
}

void CaptureFile::read_new() {
  const std::uint64_t end = header_.next_ring;
  if (end < next_) return;
  const std::uint64_t kept = std::min<std::uint64_t>(header_.ring_segments * kSegmentRecords, kMostAtOnce);
  if (end - next_ > kept) next_ = end - kept;
  for (auto at = missing_.begin(); at != missing_.end();) {
    at = take(at->first) || ++at->second > kPatience ? missing_.erase(at) : std::next(at);
  }
  for (; next_ < end; ++next_) {
    if (!take(next_) && missing_.size() < kMostMissing) missing_.emplace(next_, 0);
  }
}

bool CaptureFile::take(std::uint64_t number) {
  unsigned char bytes[kRecordBytes];
  if (!record(Stream::ring, number, bytes)) return false;
  switch (static_cast<RecordType>(bytes[offsetof(Call, type)])) {
    case RecordType::call: take_call(number, as<Call>(bytes)); break;
    case RecordType::event: {
      const auto event = as<Event>(bytes);
      if (static_cast<EventCode>(event.code) == EventCode::step) step_ = event.value;
      if (static_cast<EventCode>(event.code) == EventCode::exception && exception_.empty()) {
        exception_ = text(event.text);
        if (exception_.empty()) exception_ = "an exception";
      }
      break;
    }
    default: break;
  }
  return true;
}

void CaptureFile::note_times(const Call& call) {
  const std::int64_t latest = std::max({call.issue, call.start, call.end});
  latest_ = std::max(latest_, latest);
  std::int64_t& of_group = latest_of_[call.group];
  of_group = std::max(of_group, latest);
}

void CaptureFile::take_call(std::uint64_t number, const Call& call) {
  ++calls_;
  note_times(call);
  if (!is_open(call)) return;
  if (open_.size() >= kMostOpen) open_.erase(open_.begin());
  open_[number] = {.number = number,
                   .kind = static_cast<CallKind>(call.kind),
                   .async = (call.flags & kAsync) != 0,
                   .group = call.group,
                   .seq = call.seq,
                   .peer = call.peer,
                   .issue = call.issue};
}

void CaptureFile::check_open() {
  for (auto at = open_.begin(); at != open_.end();) {
    unsigned char bytes[kRecordBytes];
    if (!record(Stream::ring, at->first, bytes)) {  // written over: nothing more is known of it
      at = open_.erase(at);
      continue;
    }
    const auto call = as<Call>(bytes);
    note_times(call);
    at = is_open(call) ? std::next(at) : open_.erase(at);
  }
}

std::int64_t CaptureFile::latest(std::uint32_t group) const {
  const auto at = latest_of_.find(group);
  return at == latest_of_.end() ? 0 : at->second;
}

std::string CaptureFile::text(std::uint32_t id) const {
  std::string all;
  for (std::uint64_t number = std::uint64_t{id} - 1; id != 0; ++number) {
    unsigned char bytes[kRecordBytes];
    if (!record(Stream::tables, number, bytes)) return all;
    const auto piece = as<Text>(bytes);
    all.append(piece.piece, std::min<std::size_t>(piece.bytes, sizeof(piece.piece)));
    if (piece.more == 0 || all.size() > (16U << 10)) return all;
  }
  return all;
}

GroupNames CaptureFile::group(std::uint32_t id) {
  if (id == 0) return {};
  if (const auto known = groups_.find(id); known != groups_.end()) return known->second;
  unsigned char bytes[kRecordBytes];
  if (!record(Stream::tables, id - 1, bytes) || bytes[offsetof(Group, type)] != static_cast<int>(RecordType::group)) {
    return {};
  }
  const auto group = as<Group>(bytes);
  GroupNames names{.name = text(group.name), .ranks = {}};
  const std::int32_t size = std::clamp(group.size, 0, kMostRanks);
  if (group.first >= 0 && group.step != 0) {
    for (std::int64_t i = 0; i < size; ++i)
      names.ranks.push_back(static_cast<std::int32_t>(group.first + i * group.step));
  } else if (group.first >= 0) {
    for (std::uint64_t number = id; static_cast<std::int64_t>(names.ranks.size()) < size; ++number) {
      if (!record(Stream::tables, number, bytes)) break;
      const auto members = as<Members>(bytes);
      if (members.type != static_cast<std::uint8_t>(RecordType::members) || members.count == 0) break;
      names.ranks.insert(names.ranks.end(), members.ranks, members.ranks + std::min<int>(members.count, 14));
    }
  }
  if (groups_.size() < kMostOpen) groups_[id] = names;
  return names;
}

}  // namespace ddx::live
