#include "live/preload/call.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "live/capture/ddx_trace.h"

namespace ddx::preload {

constinit __attribute__((tls_model("initial-exec"))) thread_local Current t_current{};
PluginState g_plugin;

namespace {

using capture::CallKind;
using capture::ElementType;
using capture::Reduction;

constexpr std::uint8_t kLayer = static_cast<std::uint8_t>(capture::Layer::nccl_call);

// How many elements go in, for each that the user counts; 0: that is not known.
std::uint64_t share_of(CallKind kind, int size, bool is_root) {
  switch (kind) {
    case CallKind::reduce_scatter:
    case CallKind::all_to_all: return size > 0 ? static_cast<std::uint64_t>(size) : 0;
    case CallKind::scatter: return is_root && size > 0 ? static_cast<std::uint64_t>(size) : 0;
    default: return 1;
  }
}

// Says once which NCCL this is.
void tell_library(Library* library) {
  if (library == nullptr || library->told.load(std::memory_order_relaxed) || library->told.exchange(true)) return;
  int version = 0;
  if (real<Function::GetVersion>(library, &version) != nccl::kSuccess) return;
  char text[64];
  const int length =
      std::snprintf(text, sizeof(text), "NCCL %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
  ddx_event(static_cast<std::uint8_t>(capture::EventCode::layer_loaded), kLayer, 0,
            ddx_text(text, static_cast<std::size_t>(length)), 0, version);
}

void note_pending(std::uint64_t call, const CallFacts& facts) {
  Current& current = t_current;
  if (current.pending == nullptr) {
    // One for each thread that calls NCCL, for as long as the process lives.
    void* room =
        mmap(nullptr, kMostPending * sizeof(PendingCall), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return;
    current.pending = static_cast<PendingCall*>(room);
  }
  if (current.pendings == kMostPending) return;
  current.pending[current.pendings++] = {
      call, facts.kind, facts.send, facts.recv, facts.count * nccl::bytes_of(facts.type), facts.peer};
}

void forget_in_child() {
  forget_sites();
  forget_comms();
  t_current = Current{};
}

__attribute__((constructor)) void prepare() { pthread_atfork(nullptr, nullptr, forget_in_child); }

}  // namespace

std::uint8_t element_of(nccl::DataType type) {
  constexpr ElementType kTypes[nccl::kTypes] = {ElementType::i8,   ElementType::u8,     ElementType::i32,
                                                ElementType::u32,  ElementType::i64,    ElementType::u64,
                                                ElementType::f16,  ElementType::f32,    ElementType::f64,
                                                ElementType::bf16, ElementType::f8e4m3, ElementType::f8e5m2};
  return static_cast<std::uint8_t>(type >= 0 && type < nccl::kTypes ? kTypes[type] : ElementType::unknown);
}

std::uint8_t reduction_of(nccl::ReduceOp op) {
  constexpr Reduction kOps[nccl::kBuiltInOps] = {Reduction::sum, Reduction::prod, Reduction::max, Reduction::min,
                                                 Reduction::avg};
  if (op < 0) return static_cast<std::uint8_t>(Reduction::none);
  return static_cast<std::uint8_t>(op < nccl::kBuiltInOps ? kOps[op] : Reduction::premul_sum);
}

bool records() {
  static const bool kWanted = std::getenv("DDX_NO_NCCL") == nullptr;  // `ddx wrap --no-nccl`
  return t_current.inside == 0 && kWanted && ddx_recording() != 0;
}

KnownComm* known_comm(nccl::Comm comm, Library* library) {
  if (comm == nullptr) return nullptr;
  if (KnownComm* known = find_comm(comm)) return known;
  CommFacts facts;
  facts.library = library;
  if (real<Function::CommCount>(library, comm, &facts.size) != nccl::kSuccess) facts.size = -1;
  if (real<Function::CommUserRank>(library, comm, &facts.position) != nccl::kSuccess) facts.position = -1;
  tell_library(library);
  DdxGroupInfo info{};
  info.size_of = sizeof(info);
  info.layer = kLayer;
  info.backend = ddx_text("nccl", 4);
  info.outer = ddx_current_group();
  info.size = facts.size;
  info.position = facts.position;
  info.device = -1;
  facts.group = ddx_group(&info);
  return add_comm(comm, facts);
}

Call::Call(const CallFacts& facts, const void* caller) {
  // Not before it is known who calls: a program that is not ours to see must leave no file.
  Site site = site_of(caller, false);
  recorded_ = !site.is_inner && records();
  if (recorded_ && site.frame == 0) site = site_of(caller, true);
  library_ = site.library;
  KnownComm* comm = recorded_ ? known_comm(facts.comm, site.library) : find_comm(facts.comm);
  if (comm != nullptr && comm->facts.library != nullptr) library_ = comm->facts.library;
  if (recorded_)
    begin(facts, comm == nullptr ? 0 : comm->facts.group, comm == nullptr ? -1 : comm->facts.size, site.frame);
}

Call::Call(CallKind kind, std::uint32_t group, Library* library, std::uint32_t site)
    : library_(library), recorded_(true) {
  tell_library(library);
  CallFacts facts;
  facts.kind = kind;
  begin(facts, group, -1, site);
}

void Call::begin(const CallFacts& facts, std::uint32_t group, int size, std::uint32_t site) {
  DdxCallInfo info{};
  info.size_of = sizeof(info);
  info.layer = kLayer;
  info.kind = static_cast<std::uint8_t>(facts.kind);
  info.element = element_of(facts.type);
  info.reduction = reduction_of(facts.reduction);
  info.flags = capture::kAsync;
  info.group = facts.kind == CallKind::unknown ? 0 : group;  // what has no kind has no place in the group's count
  info.peer = facts.peer;
  info.site = site;
  info.stream = reinterpret_cast<std::uint64_t>(facts.stream);
  info.batch = t_current.batch;
  bool is_root = false;
  if (facts.kind == CallKind::scatter) {
    const KnownComm* comm = find_comm(facts.comm);
    is_root = comm != nullptr && comm->facts.position == facts.peer;
  }
  const std::uint64_t share = share_of(facts.kind, size, is_root);
  info.count = facts.count * share;
  const bool sized = facts.kind == CallKind::reduce_scatter || facts.kind == CallKind::all_to_all;
  if (facts.type < 0 || (sized && share == 0)) info.flags |= capture::kNoCount;
  // The profiler says nothing of calls without data, nor of communicators of one.
  if (!g_plugin.tells_ends.load(std::memory_order_relaxed) || facts.count == 0 || size == 1) {
    info.flags |= capture::kNoEnd;
  }
  std::int64_t name = 0;
  DdxValues named{static_cast<std::uint8_t>(capture::Field::name), 1, &name};
  if (facts.name != nullptr) {
    name = ddx_text(facts.name, std::strlen(facts.name));
    info.more = &named;
    info.more_count = 1;
  }
  call_ = ddx_begin(&info);
  t_current.call = call_;
  t_current.event = 0;
  if (call_ != 0 && g_plugin.wants_pending.load(std::memory_order_relaxed)) note_pending(call_, facts);
}

void Call::returned(nccl::Result result) {
  if (!recorded_) return;
  t_current.call = 0;
  if (t_current.groups == 0) t_current.pendings = 0;
  ddx_returned(call_, result == nccl::kInProgress ? 0 : result);
}

}  // namespace ddx::preload
