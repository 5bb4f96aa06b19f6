// Writer: appends to one capture file (record.h) from any number of threads, without locks and, after open(),
// without memory from the heap. It lives in the process that is watched: it throws nothing, prints nothing, and on any
// trouble of its own it stops and notes why in the file's header.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "traces/capture/record.h"

namespace ddx::capture {

struct Limits {
  std::uint32_t ring_segments = 256;  // of 1 MiB: the latest 4 million calls
  std::uint32_t table_segments = 64;
};

class Writer {
 public:
  Writer() = default;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Makes the file, which must not exist, and its first segments. `identity`: what of the header the caller knows; the
  // layout, the counters and the clock are filled in here. Returns 0, or an errno and leaves no file.
  int open(const char* path, const Header& identity, const Limits& limits);
  // Lets go of the file. No other thread may be inside; what was written stays.
  void close();
  // Of a forked child: the file is its parent's. Unlike close() it touches nothing that the parent sees.
  void forget();

  bool is_open() const { return header_ != nullptr; }
  Header* header() { return header_; }

  // 1 + number of the table's record; 0: not kept. The same text or frame has one record (as a rule: where two threads
  // bring it at once it may have two).
  std::uint32_t text(std::string_view bytes);
  std::uint32_t frame(const Frame& fields);
  // `fields.first` -1 and `ranks` given: these are its members.
  std::uint32_t group(const Group& fields, const std::int32_t* ranks, std::size_t count);

  // 1 + number of the ring's record; 0: not kept. Serial, type, `more` and `outer_back` are filled in here; `outer`:
  // what this returned for the call that made this one, or 0.
  std::uint64_t call(const Call& fields, const More* more, std::size_t more_count, std::uint64_t outer);
  std::uint64_t event(const Event& fields);

  // The first time counts, so that who sees it late does not move it. Calls that were written over are left alone.
  void mark_start(std::uint64_t id, std::int64_t when);
  void mark_end(std::uint64_t id, std::int64_t when, std::uint8_t flags = 0);
  // The call failed: its flag is set.
  void mark_flags(std::uint64_t id, std::uint8_t flags);

 private:
  static constexpr std::uint32_t kMostRing = 8192;
  static constexpr std::uint32_t kMostTables = 256;
  struct Slot {
    std::atomic<std::uint64_t> key;  // 0: free
    std::atomic<std::uint32_t> id;   // 0: being written
  };

  void* map_segment(Stream stream, std::uint32_t number);
  unsigned char* record(Stream stream, std::uint64_t number);
  Call* call_at(std::uint64_t id);
  template <class Same, class Write>
  std::uint32_t interned(std::uint64_t key, Same same, Write write);
  bool has_text(std::uint32_t id, std::string_view bytes);
  std::uint32_t write_text(std::string_view bytes);
  std::uint64_t take(Stream stream, std::size_t count);
  void stop(Stopped why);
  bool stopped() const;

  int file_ = -1;
  Header* header_ = nullptr;
  Slot* slots_ = nullptr;
  Limits limits_;
  std::atomic<std::uint32_t> segments_{0};  // in the file
  std::atomic<void*> spare_{nullptr};       // made by a thread that came second
  std::atomic<void*> ring_[kMostRing] = {};
  std::atomic<void*> tables_[kMostTables] = {};
};

}  // namespace ddx::capture
