#include "live/capture/ddx_trace.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

#include "live/capture/rank_output.h"
#include "traces/capture/writer.h"

namespace {

using ddx::capture::Call;
using ddx::capture::CallKind;
using ddx::capture::Event;
using ddx::capture::EventCode;
using ddx::capture::Frame;
using ddx::capture::Group;
using ddx::capture::Header;
using ddx::capture::kEndAtHost;
using ddx::capture::kFailed;
using ddx::capture::kLayerMask;
using ddx::capture::kNoEnd;
using ddx::capture::Limits;
using ddx::capture::More;
using ddx::capture::offer_output;
using ddx::capture::Writer;

enum class State : int { unopened, opening, open, off };

// How many calls of each sort were made in a group.
struct GroupCount {
  std::atomic<std::uint32_t> group;  // 0: free
  std::atomic<std::uint32_t> collectives;
  std::atomic<std::uint32_t> transfers;
};

// What is said of a process before the first call, or while others still open the file.
struct Identity {
  std::atomic<std::int32_t> rank{-1}, world_size{-1}, local_rank{-1};
};

constexpr std::size_t kGroups = 1 << 14;
constexpr std::size_t kStreams = 1 << 12;

// All of the process; in memory that costs nothing until it is touched, and is never torn down: calls may come from
// other libraries' destructors.
struct Recorder {
  std::atomic<State> state{State::unopened};
  std::atomic<std::uint32_t> batches{0};
  std::atomic<std::uint64_t> streams[kStreams] = {};
  GroupCount groups[kGroups] = {};
  Identity identity;
  Writer writer;
};

alignas(Recorder) unsigned char g_storage[sizeof(Recorder)];

// Made before main and before any thread, when the library is loaded.
Recorder& recorder() { return *std::launder(reinterpret_cast<Recorder*>(g_storage)); }

// The calls that this thread is in, outermost first.
constexpr int kDepth = 8;
struct Nesting {
  std::uint64_t calls[kDepth];
  std::uint32_t groups[kDepth];
  int depth;
};
__attribute__((tls_model("initial-exec"))) thread_local Nesting t_nesting{};

std::int64_t monotonic() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// The first of these variables that holds a number that fits; -1.
std::int32_t number_in(std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    const char* text = std::getenv(variable);
    if (text == nullptr || *text < '0' || *text > '9') continue;
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (*end == '\0' && value <= INT32_MAX) return static_cast<std::int32_t>(value);
  }
  return -1;
}

std::int32_t rank_of_environment() {
  return number_in({"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"});
}

std::size_t read_file(const char* path, char* into, std::size_t room) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::size_t size = 0;
  while (size < room) {
    const ssize_t got = read(file, into + size, room - size);
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  close(file);
  return size;
}

// Field 22 of /proc/self/stat. The name before it may hold blanks and brackets, so that the last bracket counts.
std::uint64_t process_start() {
  char text[1024];
  const std::size_t size = read_file("/proc/self/stat", text, sizeof(text) - 1);
  text[size] = '\0';
  const char* at = std::strrchr(text, ')');
  for (int field = 2; at != nullptr && field < 22; ++field) {
    at = std::strchr(at + 1, ' ');
  }
  return at == nullptr ? 0 : std::strtoull(at, nullptr, 10);
}

void fill(Header& header) {
  header.pid = getpid();
  header.parent_pid = getppid();
  header.process_start = process_start();
  Identity& told = recorder().identity;
  const auto either = [](std::int32_t said, std::int32_t found) { return said >= 0 ? said : found; };
  header.rank = either(told.rank, rank_of_environment());
  header.world_size =
      either(told.world_size, number_in({"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}));
  header.local_rank = either(told.local_rank, number_in({"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"}));
  header.attempt = number_in({"TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"});
  if (gethostname(header.host, sizeof(header.host) - 1) != 0) header.host[0] = '\0';
  const std::size_t size = read_file("/proc/self/cmdline", header.program, sizeof(header.program) - 1);
  if (size > 0) std::replace(header.program, header.program + size - 1, '\0', ' ');
}

bool open_file() {
  const char* folder = std::getenv("DDX_TRACE_DIR");
  if (folder == nullptr || *folder == '\0') return false;
  Header header{};
  fill(header);
  Limits limits;
  if (const std::int32_t mib = number_in({"DDX_TRACE_MIB"}); mib > 0) {
    limits.ring_segments = static_cast<std::uint32_t>(mib);
  }
  // A number of a process may come again within one run; and a folder may be shared by hosts.
  for (int attempt = 0; attempt < 100; ++attempt) {
    char path[4096];
    const int length = attempt == 0 ? std::snprintf(path, sizeof(path), "%s/%s-%lld.ddx", folder, header.host,
                                                    static_cast<long long>(header.pid))
                                    : std::snprintf(path, sizeof(path), "%s/%s-%lld-%d.ddx", folder, header.host,
                                                    static_cast<long long>(header.pid), attempt);
    if (length < 0 || static_cast<std::size_t>(length) >= sizeof(path)) return false;
    const int error = recorder().writer.open(path, header, limits);
    if (error == 0) return true;
    if (error != EEXIST) return false;
  }
  return false;
}

// The writer, where calls are recorded.
Writer* writer() {
  Recorder& all = recorder();
  State state = all.state.load(std::memory_order_acquire);
  if (state == State::open) return &all.writer;
  if (state == State::off) return nullptr;
  if (state == State::unopened && all.state.compare_exchange_strong(state, State::opening)) {
    const int error = errno;
    const bool opened = open_file();
    errno = error;
    all.state.store(opened ? State::open : State::off, std::memory_order_release);
  }
  while ((state = all.state.load(std::memory_order_acquire)) == State::opening) sched_yield();
  return state == State::open ? &all.writer : nullptr;
}

void forget_in_child() {
  Recorder& all = recorder();
  all.writer.forget();
  for (GroupCount& group : all.groups) {
    if (group.group.load(std::memory_order_relaxed) != 0) group.group.store(0, std::memory_order_relaxed);
  }
  t_nesting = Nesting{};
  all.state.store(State::unopened, std::memory_order_release);
}

// Earlier than the constructors of libraries that record.
__attribute__((constructor(101))) void prepare() {
  new (g_storage) Recorder;
  pthread_atfork(nullptr, nullptr, forget_in_child);
  offer_output(rank_of_environment());
}

__attribute__((destructor(101))) void leave() {
  Recorder& all = recorder();
  if (all.state.load(std::memory_order_acquire) != State::open) return;
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  all.writer.header()->finished_realtime = std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  ddx_event(static_cast<std::uint8_t>(EventCode::torn_down), 0, 0, 0, 0, 0);
}

// The next number of a call in its group; 0 where there are too many groups to count.
std::uint32_t next_seq(std::uint32_t group, bool transfer) {
  if (group == 0) return 0;
  GroupCount* const groups = recorder().groups;
  for (std::size_t probe = 0; probe < 64; ++probe) {
    GroupCount& count = groups[(group * 2654435761U + probe) % kGroups];
    std::uint32_t found = count.group.load(std::memory_order_acquire);
    if (found != group) {
      if (found != 0) continue;
      if (!count.group.compare_exchange_strong(found, group) && found != group) continue;
    }
    return (transfer ? count.transfers : count.collectives).fetch_add(1, std::memory_order_relaxed) + 1;
  }
  return 0;
}

std::uint16_t stream_number(std::uint64_t stream) {
  if (stream == 0) return 0;
  auto& streams = recorder().streams;
  for (std::size_t i = 0; i < kStreams; ++i) {
    std::uint64_t found = streams[i].load(std::memory_order_acquire);
    if (found == stream) return static_cast<std::uint16_t>(i + 1);
    if (found != 0) continue;
    if (streams[i].compare_exchange_strong(found, stream) || found == stream) return static_cast<std::uint16_t>(i + 1);
  }
  return 0;
}

bool is_transfer(std::uint8_t kind) {
  return kind == static_cast<std::uint8_t>(CallKind::send) || kind == static_cast<std::uint8_t>(CallKind::recv);
}

// Records of what a call says besides; as many as fit.
constexpr std::size_t kMostMore = 255;
std::size_t pack(const DdxValues* fields, std::size_t field_count, More (&into)[kMostMore]) {
  constexpr std::size_t kPiece = sizeof(More::values) / sizeof(std::int64_t);
  std::size_t records = 0;
  for (std::size_t i = 0; i < field_count; ++i) {
    for (std::size_t at = 0; at < fields[i].count; at += kPiece) {
      if (records == kMostMore) return records;
      More& more = into[records++];
      more = More{};
      more.field = fields[i].field;
      more.count = static_cast<std::uint8_t>(std::min(fields[i].count - at, kPiece));
      std::memcpy(more.values, fields[i].values + at, more.count * sizeof(std::int64_t));
    }
  }
  return records;
}

std::uint64_t current_call() {
  const Nesting& nesting = t_nesting;
  return nesting.depth == 0 ? 0 : nesting.calls[std::min(nesting.depth, kDepth) - 1];
}

std::uint64_t append(Writer& to, Call& call, const DdxCallInfo* info) {
  if (info->more_count == 0) return to.call(call, nullptr, 0, current_call());
  More more[kMostMore];
  return to.call(call, more, pack(info->more, info->more_count, more), current_call());
}

}  // namespace

extern "C" {

#define DDX_EXPORT __attribute__((visibility("default")))

DDX_EXPORT int ddx_trace_abi(void) { return DDX_TRACE_ABI; }

DDX_EXPORT int ddx_recording(void) { return writer() != nullptr ? 1 : 0; }

DDX_EXPORT void ddx_identify(int32_t rank, int32_t world_size, int32_t local_rank) {
  Identity& told = recorder().identity;
  if (rank >= 0) {
    told.rank = rank;
    offer_output(rank);
  }
  if (world_size >= 0) told.world_size = world_size;
  if (local_rank >= 0) told.local_rank = local_rank;
  if (recorder().state.load(std::memory_order_acquire) != State::open) return;
  Header* header = recorder().writer.header();
  if (rank >= 0) __atomic_store_n(&header->rank, rank, __ATOMIC_RELAXED);
  if (world_size >= 0) __atomic_store_n(&header->world_size, world_size, __ATOMIC_RELAXED);
  if (local_rank >= 0) __atomic_store_n(&header->local_rank, local_rank, __ATOMIC_RELAXED);
}

DDX_EXPORT uint32_t ddx_text(const char* bytes, size_t length) {
  Writer* to = writer();
  return to == nullptr || bytes == nullptr ? 0 : to->text({bytes, length});
}

DDX_EXPORT uint32_t ddx_frame(uint32_t caller, uint32_t function, uint32_t file, uint32_t line, uint64_t address) {
  Writer* to = writer();
  if (to == nullptr) return 0;
  Frame frame{};
  frame.caller = caller;
  frame.function = function;
  frame.file = file;
  frame.line = line;
  frame.address = address;
  return to->frame(frame);
}

DDX_EXPORT uint32_t ddx_group(const DdxGroupInfo* info) {
  Writer* to = writer();
  if (to == nullptr || info == nullptr || info->size_of < sizeof(DdxGroupInfo)) return 0;
  Group group{};
  group.layer = info->layer;
  group.name = info->name;
  group.description = info->description;
  group.backend = info->backend;
  group.parent = info->parent;
  group.outer = info->outer;
  group.size = info->size;
  group.position = info->position;
  group.hash = info->hash;
  group.color = info->color;
  group.key = info->key;
  group.device = info->device < 0 ? 0 : static_cast<std::uint32_t>(info->device) + 1;
  group.first = -1;
  const std::size_t count = info->ranks == nullptr ? 0 : info->rank_count;
  if (count == 0) return to->group(group, nullptr, 0);
  group.size = static_cast<std::int32_t>(count);
  group.first = info->ranks[0];
  group.step = count > 1 ? info->ranks[1] - info->ranks[0] : 1;
  for (std::size_t i = 1; i < count; ++i) {
    if (info->ranks[i] - info->ranks[i - 1] != group.step) group.step = 0;
  }
  return to->group(group, info->ranks, group.step == 0 ? count : 0);
}

DDX_EXPORT uint64_t ddx_begin(const DdxCallInfo* info) {
  Writer* to = writer();
  if (to == nullptr || info == nullptr || info->size_of < sizeof(DdxCallInfo)) return 0;
  Call call{};
  call.kind = info->kind;
  call.element = info->element;
  call.reduction = info->reduction;
  call.flags = static_cast<std::uint8_t>((info->flags & ~kLayerMask) | (info->layer & kLayerMask));
  call.group = info->group;
  call.seq = next_seq(info->group, is_transfer(info->kind));
  call.peer = info->peer;
  call.site = info->site;
  call.count = info->count;
  call.stream = stream_number(info->stream);
  call.batch = info->batch;
  call.issue = monotonic();
  const std::uint64_t id = append(*to, call, info);
  Nesting& nesting = t_nesting;
  if (nesting.depth < kDepth) {
    nesting.calls[nesting.depth] = id;
    nesting.groups[nesting.depth] = info->group;
  }
  ++nesting.depth;
  const std::uint32_t bit = 1U << info->layer;
  if ((__atomic_load_n(&to->header()->layers, __ATOMIC_RELAXED) & bit) == 0)
    __atomic_fetch_or(&to->header()->layers, bit, __ATOMIC_RELAXED);
  return id;
}

DDX_EXPORT void ddx_returned(uint64_t call, int64_t status) {
  if (t_nesting.depth > 0) --t_nesting.depth;
  if (call == 0 || status == 0) return;
  Writer* to = writer();
  if (to == nullptr) return;
  to->mark_flags(call, kFailed);
  Event event{};
  event.code = static_cast<std::uint8_t>(EventCode::call_failed);
  event.time = monotonic();
  event.value = status;
  event.call = call;
  to->event(event);
}

DDX_EXPORT void ddx_started(uint64_t call, int64_t when) {
  Writer* to = call == 0 ? nullptr : writer();
  if (to != nullptr) to->mark_start(call, when != 0 ? when : monotonic());
}

DDX_EXPORT void ddx_ended(uint64_t call, int64_t when) {
  Writer* to = call == 0 ? nullptr : writer();
  if (to != nullptr) to->mark_end(call, when != 0 ? when : monotonic());
}

DDX_EXPORT void ddx_waited(uint64_t call) {
  Writer* to = call == 0 ? nullptr : writer();
  if (to != nullptr) to->mark_end(call, monotonic(), kEndAtHost);
}

DDX_EXPORT void ddx_no_end(uint64_t call) {
  Writer* to = call == 0 ? nullptr : writer();
  if (to != nullptr) to->mark_flags(call, kNoEnd);
}

DDX_EXPORT uint64_t ddx_current(void) { return current_call(); }

DDX_EXPORT uint32_t ddx_current_group(void) {
  const Nesting& nesting = t_nesting;
  return nesting.depth == 0 ? 0 : nesting.groups[std::min(nesting.depth, kDepth) - 1];
}

DDX_EXPORT uint16_t ddx_batch(void) {
  // 0 is no batch.
  return static_cast<uint16_t>(recorder().batches.fetch_add(1, std::memory_order_relaxed) % UINT16_MAX + 1);
}

DDX_EXPORT void ddx_event(uint8_t code, uint8_t layer, uint32_t group, uint32_t text, uint32_t site, int64_t value) {
  Writer* to = writer();
  if (to == nullptr) return;
  Event event{};
  event.code = code;
  event.layer = layer;
  event.group = group;
  event.text = text;
  event.site = site;
  event.time = monotonic();
  event.value = value;
  to->event(event);
}

}  // extern "C"
