// The words of PyTorch's flight recorder: keys, operation names, datatypes, rank lists.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/model/op.h"

namespace ddx::formats {

// Keys of one entry.
enum class RecorderField : std::uint8_t {
  unknown,
  ignored,  // known, of no use to ddx
  record_id,
  pg_id,
  process_group,
  collective_seq_id,
  p2p_seq_id,
  op_id,
  profiling_name,
  time_created,
  duration,
  input_sizes,
  output_sizes,
  input_types,
  output_types,
  input_splits,
  output_splits,
  state,
  time_started,
  time_completed,
  retired,
  timeout,
  is_p2p,
  frames,
};
RecorderField recorder_field(std::string_view key);

// Keys of the whole dump.
enum class RecorderSection : std::uint8_t { unknown, ignored, version, library_version, config, status, entries };
RecorderSection recorder_section(std::string_view key);

// "nccl:recv 1<-0" in its parts.
struct ProfilingName {
  OpKind kind = OpKind::unknown;
  std::string_view backend;          // "nccl"; empty: no prefix
  std::string_view name;             // without " 1<-0": "nccl:recv"
  std::optional<std::int64_t> peer;  // of send and recv, where recorded: position in the communicator
  // "ALLGATHER_coalesced" and kin: a whole operation of many tensors, or the end marker of a batch of single ones.
  bool may_end_batch = false;
};
ProfilingName parse_profiling_name(std::string_view text);

// Operations of this backend return at once and run in order on a stream.
bool is_stream_ordered(std::string_view backend);

// c10's names: "Float", "BFloat16" ...
DataType recorder_data_type(std::string_view name);

// "[0, 1, 2]", "[0,1,2]", "0,1,2"; nullopt where the text is no such list.
std::optional<std::vector<RankId>> parse_rank_list(std::string_view text);

// A whole number and nothing else: JSON dumps write the counters of pg_status as text.
std::optional<std::int64_t> parse_recorder_number(std::string_view text);

// "2.10" -> {2, 10}.
std::optional<std::pair<std::uint32_t, std::uint32_t>> parse_recorder_version(std::string_view text);

}  // namespace ddx::formats
