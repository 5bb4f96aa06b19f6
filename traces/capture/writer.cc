#include "traces/capture/writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace ddx::capture {

namespace {

constexpr std::size_t kSlots = 1 << 16;
constexpr std::size_t kProbes = 32;
constexpr std::size_t kMaxText = 16 << 10;
constexpr std::size_t kPiece = sizeof(Text::piece);
constexpr std::size_t kRanksPerPiece = sizeof(Members::ranks) / sizeof(std::int32_t);

std::int64_t now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
  return hash ^ (hash >> 32);
}

std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = bytes.size();
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    hash = mix(hash, word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, bytes.data(), bytes.size());
  return mix(hash, rest) | 1;
}

// Fields first, then the serial: a reader that sees the serial sees them.
template <class Record>
void publish(unsigned char* at, Record fields, RecordType type, std::uint64_t number) {
  auto* serial = reinterpret_cast<std::uint32_t*>(at);
  __atomic_store_n(serial, 0, __ATOMIC_RELAXED);  // what stood here is no record from now on
  __atomic_thread_fence(__ATOMIC_RELEASE);
  fields.type = static_cast<std::uint8_t>(type);
  std::memcpy(at + sizeof(std::uint32_t), reinterpret_cast<const unsigned char*>(&fields) + sizeof(std::uint32_t),
              kRecordBytes - sizeof(std::uint32_t));
  __atomic_store_n(serial, serial_of(number), __ATOMIC_RELEASE);
}

// A process that writes beyond its limit is sent a signal that ends it.
bool within_file_limit(off_t size) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         static_cast<rlim_t>(size) <= limit.rlim_cur;
}

// An error number, or 0. A write into the mapping of a file's hole is a bus error where the disk is full, so that all
// room is taken before.
int take_room(int file, off_t offset, off_t size) {
  if (!within_file_limit(offset + size)) return EFBIG;
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(file, offset, size);
  return error;
}

}  // namespace

int Writer::open(const char* path, const Header& identity, const Limits& limits) {
  limits_.ring_segments = std::clamp<std::uint32_t>(limits.ring_segments, 2, kMostRing);
  limits_.table_segments = std::clamp<std::uint32_t>(limits.table_segments, 1, kMostTables);
  file_ = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file_ < 0) return errno;
  int error = take_room(file_, 0, kHeaderBytes);
  void* page = MAP_FAILED;
  if (error == 0) {
    page = mmap(nullptr, kHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (page == MAP_FAILED) error = errno;
  }
  void* slots = MAP_FAILED;
  if (error == 0) {
    slots = mmap(nullptr, kSlots * sizeof(Slot), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED) error = errno;
  }
  if (error == 0) {
    auto* header = static_cast<Header*>(page);
    *header = identity;
    header->version = kFormatVersion;
    header->header_bytes = kHeaderBytes;
    header->record_bytes = kRecordBytes;
    header->segment_bytes = kSegmentBytes;
    header->ring_segments = limits_.ring_segments;
    header->start_monotonic = now(CLOCK_MONOTONIC);
    header->start_realtime = now(CLOCK_REALTIME);
    header->next_ring = header->next_table = header->lost = header->lost_strings = 0;
    header->stopped = 0;
    slots_ = static_cast<Slot*>(slots);
    header_ = header;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    std::memcpy(header->magic, kMagic, sizeof(kMagic));  // last: before this it is no capture
    ring_[0] = map_segment(Stream::ring, 0);
    tables_[0] = map_segment(Stream::tables, 0);
    if (ring_[0] == nullptr || tables_[0] == nullptr) error = ENOSPC;
  }
  if (error != 0) {
    if (page != MAP_FAILED) munmap(page, kHeaderBytes);
    header_ = nullptr;
    unlink(path);
    ::close(file_);
    file_ = -1;
  }
  return error;
}

void Writer::close() {
  if (header_ == nullptr) return;
  for (auto& segment : ring_) {
    if (void* at = segment.exchange(nullptr)) munmap(at, kSegmentBytes);
  }
  for (auto& segment : tables_) {
    if (void* at = segment.exchange(nullptr)) munmap(at, kSegmentBytes);
  }
  munmap(slots_, kSlots * sizeof(Slot));
  munmap(header_, kHeaderBytes);
  ::close(file_);
  forget();
}

void Writer::forget() {
  file_ = -1;
  header_ = nullptr;
  slots_ = nullptr;
  segments_ = 0;
  spare_ = nullptr;
  for (auto& segment : ring_) segment = nullptr;
  for (auto& segment : tables_) segment = nullptr;
}

void Writer::stop(Stopped why) {
  std::uint32_t none = 0;
  __atomic_compare_exchange_n(&header_->stopped, &none, static_cast<std::uint32_t>(why), false, __ATOMIC_RELAXED,
                              __ATOMIC_RELAXED);
}

bool Writer::stopped() const { return __atomic_load_n(&header_->stopped, __ATOMIC_RELAXED) != 0; }

void* Writer::map_segment(Stream stream, std::uint32_t number) {
  void* at = spare_.exchange(nullptr);
  if (at == nullptr) {
    const auto offset = static_cast<off_t>(kHeaderBytes + std::size_t{segments_.fetch_add(1)} * kSegmentBytes);
    const auto size = static_cast<off_t>(kSegmentBytes);
    if (take_room(file_, offset, size) != 0) {
      stop(Stopped::disk_full);
      return nullptr;
    }
    // All of it now: a page fault costs more than the record that meets it.
    at = mmap(nullptr, kSegmentBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file_, offset);
    if (at == MAP_FAILED) {
      stop(Stopped::no_mapping);
      return nullptr;
    }
  }
  auto* head = static_cast<SegmentHead*>(at);
  head->number = number;
  __atomic_store_n(&head->stream, static_cast<std::uint32_t>(stream), __ATOMIC_RELEASE);
  return at;
}

unsigned char* Writer::record(Stream stream, std::uint64_t number) {
  const std::uint64_t segment = number / kSegmentRecords;
  const std::size_t place = number % kSegmentRecords;
  std::atomic<void*>* slot = nullptr;
  auto slot_number = static_cast<std::uint32_t>(segment);
  if (stream == Stream::ring) {
    slot_number = static_cast<std::uint32_t>(segment % limits_.ring_segments);
    slot = &ring_[slot_number];
  } else if (segment < limits_.table_segments) {
    slot = &tables_[slot_number];
  } else {
    return nullptr;  // the tables are full; calls go on without
  }
  void* at = slot->load(std::memory_order_acquire);
  if (at == nullptr) {
    void* made = map_segment(stream, slot_number);
    if (made == nullptr) return nullptr;
    if (slot->compare_exchange_strong(at, made, std::memory_order_acq_rel)) {
      at = made;
    } else {  // another thread was first: theirs counts
      __atomic_store_n(&static_cast<SegmentHead*>(made)->stream, 0, __ATOMIC_RELEASE);
      made = spare_.exchange(made);  // one kept is enough; a second is left unused in the file
      if (made != nullptr) munmap(made, kSegmentBytes);
    }
  }
  return static_cast<unsigned char*>(at) + (place + 1) * kRecordBytes;
}

std::uint64_t Writer::take(Stream stream, std::size_t count) {
  std::uint64_t* next = stream == Stream::ring ? &header_->next_ring : &header_->next_table;
  return __atomic_fetch_add(next, count, __ATOMIC_RELAXED);
}

template <class Same, class Write>
std::uint32_t Writer::interned(std::uint64_t key, Same same, Write write) {
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    Slot& slot = slots_[(key + probe) % kSlots];
    std::uint64_t found = slot.key.load(std::memory_order_acquire);
    if (found == key) {
      const std::uint32_t id = slot.id.load(std::memory_order_acquire);
      if (id != 0 && same(id)) return id;
      if (id == 0) return write();  // being written this moment, by another thread
      continue;
    }
    if (found != 0) continue;
    if (!slot.key.compare_exchange_strong(found, key, std::memory_order_acq_rel)) return write();
    const std::uint32_t id = write();
    slot.id.store(id, std::memory_order_release);
    return id;
  }
  return write();
}

bool Writer::has_text(std::uint32_t id, std::string_view bytes) {
  for (std::uint64_t number = id - 1;; ++number) {
    const unsigned char* at = record(Stream::tables, number);
    if (at == nullptr) return false;
    const auto* text = reinterpret_cast<const Text*>(at);
    const std::size_t here = std::min(bytes.size(), kPiece);
    if (text->bytes != here || std::memcmp(text->piece, bytes.data(), here) != 0) return false;
    bytes.remove_prefix(here);
    if (text->more == 0) return bytes.empty();
    if (bytes.empty()) return false;
  }
}

std::uint32_t Writer::write_text(std::string_view bytes) {
  const std::size_t pieces = std::max<std::size_t>(1, (bytes.size() + kPiece - 1) / kPiece);
  const std::uint64_t first = take(Stream::tables, pieces);
  for (std::size_t i = 0; i < pieces; ++i) {
    unsigned char* at = record(Stream::tables, first + i);
    if (at == nullptr) {
      __atomic_fetch_add(&header_->lost_strings, 1, __ATOMIC_RELAXED);
      return 0;
    }
    Text text{};
    const std::string_view piece = bytes.substr(i * kPiece, kPiece);
    text.bytes = static_cast<std::uint8_t>(piece.size());
    text.more = static_cast<std::uint16_t>(pieces - 1 - i);
    std::memcpy(text.piece, piece.data(), piece.size());
    publish(at, text, i == 0 ? RecordType::text : RecordType::text_more, first + i);
  }
  return static_cast<std::uint32_t>(first + 1);
}

std::uint32_t Writer::text(std::string_view bytes) {
  if (bytes.empty() || stopped()) return 0;
  bytes = bytes.substr(0, kMaxText);
  return interned(
      hash_of(bytes), [&](std::uint32_t id) { return has_text(id, bytes); }, [&] { return write_text(bytes); });
}

std::uint32_t Writer::frame(const Frame& fields) {
  if (stopped()) return 0;
  const auto same = [&](std::uint32_t id) {
    const unsigned char* at = record(Stream::tables, id - 1);
    if (at == nullptr) return false;
    const auto* frame = reinterpret_cast<const Frame*>(at);
    return frame->type == static_cast<std::uint8_t>(RecordType::frame) && frame->caller == fields.caller &&
           frame->function == fields.function && frame->file == fields.file && frame->line == fields.line &&
           frame->address == fields.address;
  };
  const auto write = [&]() -> std::uint32_t {
    const std::uint64_t number = take(Stream::tables, 1);
    unsigned char* at = record(Stream::tables, number);
    if (at == nullptr) {
      __atomic_fetch_add(&header_->lost_strings, 1, __ATOMIC_RELAXED);
      return 0;
    }
    publish(at, fields, RecordType::frame, number);
    return static_cast<std::uint32_t>(number + 1);
  };
  std::uint64_t key = mix(mix(mix(1, fields.caller), fields.function), fields.file);
  key = mix(mix(key, fields.line), fields.address) | 1;
  return interned(key, same, write);
}

std::uint32_t Writer::group(const Group& fields, const std::int32_t* ranks, std::size_t count) {
  if (stopped()) return 0;
  const std::size_t pieces = (count + kRanksPerPiece - 1) / kRanksPerPiece;
  const std::uint64_t first = take(Stream::tables, 1 + pieces);
  // The members first: who sees the group finds them.
  for (std::size_t i = pieces; i > 0; --i) {
    unsigned char* at = record(Stream::tables, first + i);
    if (at == nullptr) return 0;
    Members members{};
    const std::size_t begin = (i - 1) * kRanksPerPiece;
    members.count = static_cast<std::uint8_t>(std::min(count - begin, kRanksPerPiece));
    std::memcpy(members.ranks, ranks + begin, members.count * sizeof(std::int32_t));
    publish(at, members, RecordType::members, first + i);
  }
  unsigned char* at = record(Stream::tables, first);
  if (at == nullptr) return 0;
  publish(at, fields, RecordType::group, first);
  return static_cast<std::uint32_t>(first + 1);
}

std::uint64_t Writer::call(const Call& fields, const More* more, std::size_t more_count, std::uint64_t outer) {
  if (stopped()) {
    __atomic_fetch_add(&header_->lost, 1, __ATOMIC_RELAXED);
    return 0;
  }
  more_count = std::min<std::size_t>(more_count, UINT8_MAX);
  const std::uint64_t number = take(Stream::ring, 1 + more_count);
  for (std::size_t i = more_count; i > 0; --i) {
    if (unsigned char* at = record(Stream::ring, number + i)) publish(at, more[i - 1], RecordType::more, number + i);
  }
  unsigned char* at = record(Stream::ring, number);
  if (at == nullptr) {
    __atomic_fetch_add(&header_->lost, 1, __ATOMIC_RELAXED);
    return 0;
  }
  Call call = fields;
  call.more = static_cast<std::uint8_t>(more_count);
  if (outer != 0) call.outer_back = static_cast<std::uint16_t>(std::min<std::uint64_t>(number + 1 - outer, UINT16_MAX));
  publish(at, call, RecordType::call, number);
  // The next segment is made a quarter ahead of its need, mostly by one thread alone.
  if (number % kSegmentRecords == kSegmentRecords * 3 / 4) record(Stream::ring, number + kSegmentRecords / 2);
  return number + 1;
}

std::uint64_t Writer::event(const Event& fields) {
  if (stopped()) return 0;
  const std::uint64_t number = take(Stream::ring, 1);
  unsigned char* at = record(Stream::ring, number);
  if (at == nullptr) return 0;
  publish(at, fields, RecordType::event, number);
  return number + 1;
}

Call* Writer::call_at(std::uint64_t id) {
  if (id == 0) return nullptr;
  const std::uint64_t number = id - 1;
  const std::uint64_t slot = number / kSegmentRecords % limits_.ring_segments;
  void* segment = ring_[slot].load(std::memory_order_acquire);
  if (segment == nullptr) return nullptr;
  auto* call =
      reinterpret_cast<Call*>(static_cast<unsigned char*>(segment) + (number % kSegmentRecords + 1) * kRecordBytes);
  return __atomic_load_n(&call->serial, __ATOMIC_ACQUIRE) == serial_of(number) ? call : nullptr;
}

void Writer::mark_start(std::uint64_t id, std::int64_t when) {
  std::int64_t none = 0;
  if (Call* call = call_at(id)) {
    __atomic_compare_exchange_n(&call->start, &none, when, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
}

void Writer::mark_end(std::uint64_t id, std::int64_t when, std::uint8_t flags) {
  std::int64_t none = 0;
  Call* call = call_at(id);
  if (call == nullptr || __atomic_load_n(&call->end, __ATOMIC_RELAXED) != 0) return;
  if (flags != 0) __atomic_fetch_or(&call->flags, flags, __ATOMIC_RELAXED);
  __atomic_compare_exchange_n(&call->end, &none, when, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void Writer::mark_flags(std::uint64_t id, std::uint8_t flags) {
  if (Call* call = call_at(id)) __atomic_fetch_or(&call->flags, flags, __ATOMIC_RELAXED);
}

}  // namespace ddx::capture
