// The capture file (.ddx): what a process recorded of its own collective calls, one file a process. The layout, in
// terms of this machine (little-endian, no padding but what is named); docs/trace-format.md tells it in words.
//
//   header, kHeaderBytes | segment | segment | ...
//
// A segment is kSegmentBytes long: a SegmentHead, then kSegmentRecords records of 64 bytes. It belongs to one of two
// streams, tables (strings, frames, communicators; never overwritten) or ring (calls and events; once the file has
// `ring_segments` of them, the oldest is written over). The n-th record of a stream is record n % kSegmentRecords of
// its segment n / kSegmentRecords. A record counts once its `serial` is that of its number: it is written last, so that
// a process may die between any two instructions. Numbers in records that name other records are 1 + their number in
// the table stream; 0 is none.
//
// Nothing of ddx is included here or in the writer: both live in the process that is watched.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddx::capture {

inline constexpr char kMagic[8] = {'d', 'd', 'x', 't', 'r', 'a', 'c', 'e'};
inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::size_t kHeaderBytes = 4096;
inline constexpr std::size_t kRecordBytes = 64;
inline constexpr std::size_t kSegmentBytes = 1 << 20;
inline constexpr std::size_t kSegmentRecords = kSegmentBytes / kRecordBytes - 1;

// The serial of a stream's record `number`; never 0, which is "not written".
constexpr std::uint32_t serial_of(std::uint64_t number) { return static_cast<std::uint32_t>(number % 0xffffffff) + 1; }

enum class Stopped : std::uint32_t { no, disk_full, limit_of_tables, no_mapping, internal };

// Layers that record; a bit each in Header::layers, a number each in records.
enum class Layer : std::uint8_t { program, torch, nccl_call, nccl_profiler };

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint32_t record_bytes;
  std::uint32_t segment_bytes;
  std::uint32_t ring_segments;  // most segments of the ring
  std::uint32_t layers;         // bits 1 << Layer: who recorded anything
  std::int64_t pid;
  std::int64_t parent_pid;
  std::uint64_t process_start;   // in clock ticks since boot (/proc/PID/stat), so that a later pid is not taken for it
  std::int32_t rank;             // -1: not known
  std::int32_t world_size;       // -1
  std::int32_t local_rank;       // -1
  std::int32_t attempt;          // of an elastic launcher; -1
  std::int64_t start_monotonic;  // ns, CLOCK_MONOTONIC: the clock of all records
  std::int64_t start_realtime;   // ns since 1970, at the same moment
  std::int64_t finished_realtime;  // the process left by its own exit; 0: not yet, or otherwise
  std::uint32_t stopped;           // Stopped: why nothing more is recorded
  std::uint32_t reserved;
  char host[256];     // ends with a zero
  char program[512];  // the command line, blanks for zeros; ends with a zero
  // Counters, each alone in its line of the cache.
  alignas(64) std::uint64_t next_ring;   // number of the next record
  alignas(64) std::uint64_t next_table;  // the same
  alignas(64) std::uint64_t lost;        // records that could not be kept
  std::uint64_t lost_strings;            // texts and frames
};
static_assert(sizeof(Header) <= kHeaderBytes);

enum class Stream : std::uint32_t { unused, tables, ring };

struct SegmentHead {
  std::uint32_t stream;  // Stream; written last
  std::uint32_t number;  // of its stream's segments
  std::uint8_t reserved[56];
};

enum class RecordType : std::uint8_t {
  none,
  text,       // table: Text
  text_more,  // table: Text, further bytes
  frame,      // table: Frame
  group,      // table: Group
  members,    // table: Members of the group before
  call,       // ring: Call
  more,       // ring: More, of the call before
  event,      // ring: Event
};

struct Text {
  std::uint32_t serial;
  std::uint8_t type;
  std::uint8_t bytes;  // of this piece
  std::uint16_t more;  // pieces that follow this one
  char piece[56];
};

// A place in the user's code, and where it was called from.
struct Frame {
  std::uint32_t serial;
  std::uint8_t type;
  std::uint8_t reserved[3];
  std::uint32_t caller;    // Frame
  std::uint32_t function;  // Text
  std::uint32_t file;      // Text
  std::uint32_t line;      // 0: not known
  std::uint64_t address;   // of machine code in its file; 0: not known
  std::uint8_t reserved2[32];
};

// A process group or a communicator, as this process is in it.
struct Group {
  std::uint32_t serial;
  std::uint8_t type;
  std::uint8_t layer;
  std::uint16_t reserved;
  std::uint32_t name;         // Text
  std::uint32_t description;  // Text
  std::uint32_t backend;      // Text: "gloo" "nccl"
  std::uint32_t parent;       // Group
  std::int32_t size;          // -1: not known
  std::int32_t position;      // of this process in it; -1
  std::uint64_t hash;         // NCCL's own of the communicator, the same on all members; 0: not known
  std::uint32_t outer;        // Group: the process group that this communicator works for
  std::int32_t color;         // of a split
  std::int32_t key;           // of a split
  // Global ranks by position: first, first + step, ..., of `size`; or, where step is 0, those of the Members behind.
  std::int32_t first;  // -1: the members are not known
  std::int32_t step;
  std::uint32_t device;  // 1 + the GPU's number
};

struct Members {
  std::uint32_t serial;
  std::uint8_t type;
  std::uint8_t count;  // of this piece, at most 14
  std::uint16_t reserved;
  std::int32_t ranks[14];
};

// What is called. The numbers stay; new ones come behind.
enum class CallKind : std::uint8_t {
  unknown = 0,  // More::name tells
  all_reduce = 1,
  reduce_scatter = 2,
  all_gather = 3,
  broadcast = 4,
  reduce = 5,
  gather = 6,
  scatter = 7,
  all_to_all = 8,
  barrier = 9,
  send = 10,
  recv = 11,
  new_group = 12,
  split_group = 13,
};

enum class ElementType : std::uint8_t {
  unknown = 0,
  i8 = 1,
  u8 = 2,
  i16 = 3,
  u16 = 4,
  i32 = 5,
  u32 = 6,
  i64 = 7,
  u64 = 8,
  f16 = 9,
  bf16 = 10,
  f32 = 11,
  f64 = 12,
  f8e4m3 = 13,
  f8e5m2 = 14,
  boolean = 15,
  complex64 = 16,
  complex128 = 17,
};

enum class Reduction : std::uint8_t {
  none = 0,
  sum = 1,
  prod = 2,
  min = 3,
  max = 4,
  avg = 5,
  premul_sum = 6,
  band = 7,
  bor = 8,
  bxor = 9,
  user = 10,
};

// Bits of Call::flags; the lowest two are its Layer.
inline constexpr std::uint8_t kLayerMask = 0x03;
inline constexpr std::uint8_t kAsync = 0x04;      // returns before it is over
inline constexpr std::uint8_t kNoCount = 0x08;    // `count` was not seen
inline constexpr std::uint8_t kFailed = 0x10;     // the call returned an error; an event tells which
inline constexpr std::uint8_t kNoEnd = 0x20;      // nothing tells when such a call is over: end 0 says nothing
inline constexpr std::uint8_t kEndAtHost = 0x40;  // `end` is when the host's wait returned: it was over before

struct Call {
  std::uint32_t serial;
  std::uint8_t type;
  std::uint8_t kind;       // CallKind
  std::uint8_t element;    // ElementType, of what goes in
  std::uint8_t reduction;  // Reduction
  std::uint32_t group;     // Group
  std::uint32_t seq;       // collectives: from 1, per group; send and recv: a count of their own, per group
  std::int32_t peer;       // root or peer, as a position in the group; -1: none, or not seen
  std::uint32_t site;      // Frame, the innermost
  std::uint64_t count;     // elements that go in, over all tensors of the call; recv: that come out
  std::int64_t issue;      // ns, CLOCK_MONOTONIC; 0 in the next two: not (yet) seen
  std::int64_t start;
  std::int64_t end;
  std::uint16_t stream;  // 1 + a number for each stream of the process; 0: not known
  std::uint16_t batch;   // calls with one number were posted together; 0: alone. Starts again after 65535
  std::uint8_t flags;
  std::uint8_t more;         // records of type `more` that follow this one
  std::uint16_t outer_back;  // how many records back the call of an outer layer is that made this one; 0: none;
                             // 65535: as many or more
};

// What a call's record has no room for: values of one field, in pieces.
enum class Field : std::uint8_t {
  none = 0,
  split_in = 1,   // elements for each member
  split_out = 2,  // elements from each member
  count_out = 3,  // elements that come out
  tag = 4,
  name = 5,         // Text
  element_out = 6,  // ElementType
  timeout = 7,      // ns
  thread = 8,       // the caller's thread id
  members = 9,      // of the group that new_group makes: global ranks
};

struct More {
  std::uint32_t serial;
  std::uint8_t type;
  std::uint8_t field;  // Field
  std::uint8_t count;  // values here, at most 7; a field of more goes on in the next record
  std::uint8_t reserved;
  std::int64_t values[7];
};

enum class EventCode : std::uint8_t {
  none = 0,
  layer_loaded = 1,     // text: "torch 2.13.0"
  layer_blind = 2,      // text: what it cannot see, and why
  group_destroyed = 3,  // group
  group_aborted = 4,    // group
  async_error = 5,      // group, value, text
  exception = 6,        // text: the type and the words; site
  step = 7,             // value: the number of a training step that begins
  torn_down = 8,        // the process leaves by its own exit
  call_failed = 9,      // call, value: what the library returned for it
};

struct Event {
  std::uint32_t serial;
  std::uint8_t type;
  std::uint8_t code;  // EventCode
  std::uint8_t layer;
  std::uint8_t reserved;
  std::uint32_t group;  // Group
  std::uint32_t text;   // Text
  std::uint32_t site;   // Frame
  std::uint32_t reserved2;
  std::int64_t time;
  std::int64_t value;
  std::uint64_t call;  // 1 + number of a record of the ring
  std::uint8_t reserved3[16];
};

static_assert(sizeof(SegmentHead) == kRecordBytes && sizeof(Text) == kRecordBytes && sizeof(Frame) == kRecordBytes);
static_assert(sizeof(Group) == kRecordBytes && sizeof(Members) == kRecordBytes && sizeof(Call) == kRecordBytes);
static_assert(sizeof(More) == kRecordBytes && sizeof(Event) == kRecordBytes);

}  // namespace ddx::capture
