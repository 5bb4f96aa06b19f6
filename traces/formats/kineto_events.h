// What a Kineto profile says, before it is put together. Internal to the Kineto reader.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "traces/model/trace.h"

namespace ddx::formats {

// The arguments of one collective, as they stand on its record and again on its kernel. Empty text: absent.
struct KinetoCall {
  std::string name;  // "allreduce", "_allgather_base", "wait"
  std::string type, group, description, ranks, splits_in, splits_out;
  std::optional<std::int64_t> count_in, count_out, size, seq, source, destination;
  std::optional<bool> async;
  std::string bad_number;  // "In msg nelems -3": the first argument that is none
  bool has_arguments() const { return !name.empty(); }
};

struct KinetoRecord {
  KinetoCall call;
  std::optional<Nanos> time;
  std::optional<std::int64_t> external_id;
};

struct KinetoKernel {
  StringId name;
  Nanos time = 0;
  Nanos length = 0;
  bool timed = true;  // else neither is known
  std::uint32_t stream = 0;
  std::optional<std::int64_t> external_id;
  std::uint32_t call = kNoCall;  // of KinetoProfile::kernel_calls
  bool communicates = false;     // of NCCL, RCCL and kin, by its name
  static constexpr std::uint32_t kNoCall = 0xffffffff;
};

struct KinetoGroup {
  std::string description;
  std::vector<RankId> ranks;  // empty: not listed
  std::optional<std::int64_t> size;
};

struct KinetoProfile {
  std::vector<KinetoRecord> records;
  std::vector<KinetoKernel> kernels;
  std::vector<KinetoCall> kernel_calls;
  std::map<std::string, KinetoGroup, std::less<>> groups;  // of distributedInfo
  std::optional<std::int64_t> rank, world_size, base_time;
  std::string backend, library_version;
  std::string device;  // the model of the GPUs, where all of the node are of one
  std::uint64_t events = 0;
  std::uint64_t bad_times = 0;             // kernels without a usable time
  std::uint64_t left_out = 0;              // beyond the limit
  std::uint64_t mends = 0;                 // of the text
  std::optional<std::uint64_t> broken_at;  // byte
};

// Names go to `strings`. Reads what stands before the first fault where the text is broken.
KinetoProfile read_kineto_events(std::string_view text, StringTable& strings, std::uint64_t max_events);

// The same of a host execution trace, whose nodes have no times: records in their order, and the groups that they use.
KinetoProfile read_host_trace(std::string_view text, std::uint64_t max_nodes);

// Microseconds as written ("4458676524648.797"), to the nanosecond; nullopt beyond 64 bits.
std::optional<Nanos> parse_micros(std::string_view text);

}  // namespace ddx::formats
