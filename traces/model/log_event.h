// LogEvent: one line (or a few that belong together) of a log that says something about the job. Importers write them,
// analyzers judge them; nothing here is a conclusion.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

namespace ddx {

// PyTorch: "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=.., OpType=.., NumelIn=.., ...) ran for ..".
struct WatchdogTimeout {
  std::uint64_t seq = 0;
  std::string op_type;  // as written: "ALLREDUCE", "_ALLGATHER_BASE"
  std::optional<std::uint64_t> numel_in;
  std::optional<std::uint64_t> numel_out;
  std::optional<Nanos> timeout;
  std::optional<Nanos> elapsed;
};

// PyTorch: "failure detected by watchdog at work sequence id: S PG status: last enqueued work: E, ...".
struct WatchdogStatus {
  std::optional<std::uint64_t> failed_seq;
  std::optional<std::uint64_t> last_enqueued;
  std::optional<std::uint64_t> last_started;
  std::optional<std::uint64_t> last_completed;
};

// PyTorch: "ProcessGroupNCCL's watchdog got stuck for N seconds": the heartbeat monitor of a process.
struct HeartbeatStuck {
  Nanos stuck_for = 0;
};

// PyTorch: "Waiting in / Timed out ... store based barrier ... rank: R, key: K (world_size=W, worker_count=C, ...)".
struct StoreBarrier {
  RankId rank;
  std::string key;
  std::int64_t world_size = 0;
  std::int64_t worker_count = 0;
  std::optional<Nanos> timeout;
  bool timed_out = false;
};

// "Added key: store_based_barrier_key:1 to store for rank: 0": a rank arrived at the store.
struct StoreJoin {
  RankId rank;
  std::string key;
};

// One side of a ProcessGroupWrapper mismatch.
struct CollectiveFingerprint {
  RankId rank;
  std::optional<std::uint64_t> seq;
  std::string op_type;
  std::string shape;   // "[1]" as written
  std::string dtypes;  // "Long"
  std::string devices;
};
// "Detected mismatch between collectives on ranks. Rank i is running collective: ..., but Rank j is running ...".
struct WrapperMismatch {
  CollectiveFingerprint reporter;
  std::optional<CollectiveFingerprint> other;  // absent: the line was cut, or only a difference list was printed
  std::string difference;                      // "Collectives differ in the following aspects: ..." where printed
};

// "using GPU n ... as device used by this process is currently unknown": the first barrier guesses.
struct BarrierDeviceGuess {
  std::int64_t device = 0;
};

// NCCL: "ncclCommInitRank comm P rank R nranks N cudaDev D ... busId B commId 0x.. - Init START|COMPLETE".
struct CommInit {
  std::string function;
  std::string comm;  // pointer, identity within one process
  std::int64_t rank = 0;
  std::int64_t nranks = 0;
  std::optional<std::int64_t> cuda_device;
  std::string bus_id;
  std::string comm_id;  // equal on all ranks of the communicator; empty in old versions
  bool complete = false;
  // Of a split: ncclCommSplit.
  std::string parent;
  std::optional<std::int64_t> child_count;
  std::optional<std::int64_t> color;
  std::optional<std::int64_t> key;
};

// NCCL: any WARN. The kinds that have events of their own come as those, with this beside them only for `unclassified`.
struct NcclWarning {
  std::string source;  // "init.cc:497"
  std::string text;
};

// NCCL: "Duplicate GPU detected : rank a and rank b both on CUDA device X".
struct DeviceDuplicate {
  RankId rank;
  RankId other;
  std::string bus_id;
  std::optional<std::int64_t> cuda_device;  // of the prefix
};

// NCCL: "Bootstrap Root : rank R of N ranks has already checked in".
struct BootstrapDuplicate {
  RankId rank;
  std::int64_t nranks = 0;
};
// NCCL: "Bootstrap Root : mismatch in info from procs, nranks A vs B".
struct BootstrapSizeMismatch {
  std::int64_t nranks = 0;
  std::int64_t other = 0;
};
// NCCL: "Mismatched NCCL version detected : rank R .. version .. rank S ..", text as written.
struct VersionMismatch {
  std::string text;
};
// NCCL: "NCCL version 2.21.5+cuda12.4".
struct LibraryVersion {
  std::string version;
};

// NCCL: "... -> 6": an error code on its way up. The innermost (first) one says what happened.
struct ReturnCode {
  std::string source;  // "transport/net_socket.cc:368"
  std::int64_t code = 0;
};

// NCCL: "NET/IB : Using [0]mlx5_0:1/RoCE [1]... ; OOB eth0:192.0.2.5<0>".
struct NetAdapters {
  struct Adapter {
    std::int64_t index = 0;
    std::string name;
    std::string transport;  // "RoCE" "IB"
  };
  std::vector<Adapter> adapters;
  std::string out_of_band;  // "eth0:192.0.2.5<0>"
};
// NCCL: "NET/IB : Unable to open device rdma_1", "No device found", "Got async event : port error" ...
struct NetAdapterError {
  std::string device;  // empty: none named
  std::string text;
};
// NCCL: "Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/1/GDRDMA".
struct NetChannel {
  std::int64_t channel = 0;
  std::int64_t from = 0;  // positions in the communicator
  std::int64_t to = 0;
  bool sends = false;
  std::string transport;                // "NET/IB"
  std::optional<std::int64_t> adapter;  // NET/IB/1 -> 1
};
// NCCL: "NET/IB : Got completion from peer A with [status=]12, opcode .., vendor err 129".
struct NetCompletionError {
  std::string peer;  // address, without port
  std::int64_t status = 0;
  std::optional<std::int64_t> vendor_error;
};
// NCCL, gloo, TCPStore: a connection failed: "Call to recv from A<p> failed : Broken pipe", "Connection reset by peer".
struct NetSocketError {
  std::string peer;   // address, without port; empty: none named
  std::string call;   // "recv" "connect"; empty: unknown
  std::string error;  // "Broken pipe"
};
// "host not found: Name or service not known", "failed to resolve hostname": what could not be resolved.
struct NameResolutionError {
  std::string name;  // empty: not named
};
// NCCL: shared memory could not be had: "Call to posix_fallocate failed : No space left on device", "Error while
// creating shared memory segment X (size N)".
struct SharedMemoryError {
  std::string segment;
  std::optional<std::uint64_t> size;
  std::string text;
};
// NCCL: "<BYTES> Bytes -> Algo A proto P" (TRACE) and the TUNING lines.
struct TuningChoice {
  std::string op;  // empty: not written
  std::uint64_t bytes = 0;
  std::int64_t algorithm = 0;
  std::int64_t protocol = 0;
};

// The process ended, or will: an exception that nothing caught, a signal, the kernel's OOM killer, an exit code.
struct ProcessEnd {
  enum class Kind { exception, signal, oom_kill, exit_code, abort };
  Kind kind = Kind::exception;
  std::string what;       // "KeyError: '_sample_idx'", "Segmentation fault", "SIGKILL"
  std::string call_site;  // innermost user frame, "train.py:565 in load_state_dict"; empty: unknown
  std::optional<std::int64_t> signal;
  std::optional<std::int64_t> exit_code;
  // The exception only says that a peer or a collective failed (connection closed by peer, watchdog, NCCL error): a
  // consequence unless nothing else is known.
  bool secondary = false;
};

// torchelastic's table "Root Cause (first observed failure)", "Other Failures".
struct ElasticFailure {
  std::optional<RankId> rank;
  std::optional<std::int64_t> local_rank;
  std::optional<std::int64_t> exit_code;  // negative: killed by that signal
  std::string text;                       // "Signal 9 (SIGKILL) received by PID 4711"
  bool root_cause = false;
};
// torchelastic, launchers: "restart", "attempt N": a new attempt of the job begins.
struct AttemptStart {
  std::uint32_t attempt = 0;
};

// nccl-tests: one "Using devices" block.
struct TestsBanner {
  struct Row {
    RankId rank;
    std::int64_t pid = 0;
    std::string host;
    std::int64_t device = 0;
    std::string bus_id;
  };
  std::vector<Row> rows;
};

// NCCL RAS, one communicator of a text or JSON report. Counts are of launched operations.
struct RasCommunicator {
  struct Member {
    RankId rank;  // position in the communicator
    std::string host;
    std::optional<std::int64_t> pid;
    bool missing = false;
    bool unresponsive = false;
    bool considered_dead = false;
    std::string error;  // async error or init state that is not fine; empty: none
    std::vector<std::pair<std::string, std::uint64_t>> counts;  // "AllReduce" -> launched
  };
  // "30 ranks have launched up to operation 640": members may be listed or only counted.
  struct CountGroup {
    std::string op;
    std::uint64_t launched = 0;
    std::uint64_t rank_count = 0;
    std::vector<RankId> ranks;  // empty: not listed
  };
  std::string id;      // hash
  std::string status;  // "RUNNING"; empty: not recorded
  std::string errors;  // "MISMATCH" "INCOMPLETE" "DEAD" ... ; empty or "OK": none
  std::uint64_t size = 0;
  std::vector<Member> members;
  std::vector<CountGroup> groups;
};

// A line that looks like a hang and is none (vLLM's idle shm_broadcast notice and kin).
struct IdleNotice {
  std::string what;
  std::optional<Nanos> interval;
};
// A line that shows that the job went on: a step, a request, an epoch finished.
struct ProgressNotice {
  std::string what;
};
// "Python: NaN or Inf found in input tensor", "loss is nan", DETECT_NAN lines.
struct NanNotice {
  std::string what;
};
// A launcher's statement of who is where: "rank,host,ip" of an address table, "WORLD INFO DICT".
struct RankAddress {
  RankId rank;
  std::string host;
  std::string address;
};

// Where one thread of a process stood: from a dump of Python stacks (faulthandler, py-spy), or from the traceback of a
// call that timed out, which shows where its thread had waited.
struct HostStack {
  std::vector<std::string> frames;  // "file:line in function", innermost first, at most 32
  std::string distributed_call;     // innermost function of torch.distributed: "recv", "all_reduce"; empty: in none
  std::string call_site;            // innermost frame of the user's own code, as in `frames`; empty: none
  bool main_thread = false;
  bool timed_out = false;  // the wait is over: from the traceback of a time-out
};

// A library says by itself who did not come: PyTorch's monitored barrier and its desync report, Horovod's stall check.
struct ToldAbsent {
  std::string by;  // "monitoredBarrier"
  std::string at;  // what they did not come to, as written: "collective #5"; empty: not said
  std::vector<RankId> ranks;
};

// The driver says that a GPU is at fault: "NVRM: Xid (PCI:0000:9d:00): 79, pid=4711, GPU has fallen off the bus."
struct DeviceFault {
  std::optional<std::int64_t> xid;  // absent: told in words only
  std::string bus_id;               // as written: "0000:9d:00"
  std::string text;                 // what it says behind that
};

// A port that this process wants to listen on is taken.
struct PortTaken {
  std::optional<std::int64_t> port;
};

using LogFact =
    std::variant<WatchdogTimeout, WatchdogStatus, HeartbeatStuck, StoreBarrier, StoreJoin, WrapperMismatch,
                 BarrierDeviceGuess, CommInit, NcclWarning, DeviceDuplicate, BootstrapDuplicate, BootstrapSizeMismatch,
                 VersionMismatch, LibraryVersion, ReturnCode, NetAdapters, NetAdapterError, NetChannel,
                 NetCompletionError, NetSocketError, NameResolutionError, SharedMemoryError, TuningChoice, ProcessEnd,
                 ElasticFailure, AttemptStart, TestsBanner, RasCommunicator, IdleNotice, ProgressNotice, NanNotice,
                 RankAddress, HostStack, ToldAbsent, DeviceFault, PortTaken>;

struct LogEvent {
  InputId input;
  std::uint64_t line = 0;      // from 1
  std::string text;            // the line as a person should see it: no colours, no launcher prefix, at most 400 bytes
  std::optional<RankId> rank;  // global rank of the writer, where the line, its prefix or its file name says so
  std::optional<Nanos> time;   // wall clock; lines that have a time of day only count from midnight
  bool time_of_day = false;    // `time` has no date
  std::optional<std::uint32_t> attempt;
  std::string host;
  std::optional<std::int64_t> pid;
  std::optional<std::int64_t> cuda_device;  // NCCL's bracket: the thread's current device, not a rank
  std::string group;                        // PG GUID or name, or communicator pointer; empty: not said
  LogFact fact;
};

}  // namespace ddx
