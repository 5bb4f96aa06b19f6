#include "traces/formats/flight_recorder_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string>

namespace ddx::formats {
namespace {

template <class Value>
struct Word {
  std::string_view text;
  Value value;
};

using Field = RecorderField;

// Split lists came late (2.11); earlier proposals spelt them in other ways.
constexpr auto kFields = std::to_array<Word<Field>>({
    {"record_id", Field::record_id},
    {"pg_id", Field::pg_id},
    {"process_group", Field::process_group},
    {"thread_name", Field::ignored},
    {"thread_id", Field::ignored},
    {"collective_seq_id", Field::collective_seq_id},
    {"seq_id", Field::collective_seq_id},
    {"p2p_seq_id", Field::p2p_seq_id},
    {"op_id", Field::op_id},
    {"profiling_name", Field::profiling_name},
    {"time_created_ns", Field::time_created},
    {"duration_ms", Field::duration},
    {"input_sizes", Field::input_sizes},
    {"output_sizes", Field::output_sizes},
    {"input_dtypes", Field::input_types},
    {"output_dtypes", Field::output_types},
    {"input_split_sizes", Field::input_splits},
    {"output_split_sizes", Field::output_splits},
    {"in_split_sizes", Field::input_splits},
    {"out_split_sizes", Field::output_splits},
    {"input_splits", Field::input_splits},
    {"output_splits", Field::output_splits},
    {"in_splits", Field::input_splits},
    {"out_splits", Field::output_splits},
    {"state", Field::state},
    {"time_discovered_started_ns", Field::time_started},
    {"time_discovered_completed_ns", Field::time_completed},
    {"retired", Field::retired},
    {"timeout_ms", Field::timeout},
    {"is_p2p", Field::is_p2p},
    {"frames", Field::frames},
    {"stack_id", Field::ignored},
});

// In lower case and without underscores; "coalesced" at the end is taken off first.
constexpr auto kOps = std::to_array<Word<OpKind>>({
    {"allreduce", OpKind::all_reduce},
    {"allreducesparse", OpKind::all_reduce},
    {"allreducebarrier", OpKind::barrier},
    {"barrier", OpKind::barrier},
    {"monitoredbarrier", OpKind::barrier},
    {"allgather", OpKind::all_gather},
    {"allgatherbase", OpKind::all_gather},
    {"allgatherintotensor", OpKind::all_gather},
    {"allgathersingle", OpKind::all_gather},
    {"allgatherv", OpKind::all_gather},
    {"reducescatter", OpKind::reduce_scatter},
    {"reducescatterbase", OpKind::reduce_scatter},
    {"reducescattertensor", OpKind::reduce_scatter},
    {"reducescattersingle", OpKind::reduce_scatter},
    {"reducescatterv", OpKind::reduce_scatter},
    {"alltoall", OpKind::all_to_all},
    {"alltoallbase", OpKind::all_to_all},
    {"alltoallsingle", OpKind::all_to_all},
    {"alltoallv", OpKind::all_to_all},
    {"alltoallvsingle", OpKind::all_to_all},
    {"broadcast", OpKind::broadcast},
    {"broadcastoop", OpKind::broadcast},
    {"reduce", OpKind::reduce},
    {"reduceoop", OpKind::reduce},
    {"gather", OpKind::gather},
    {"gatherv", OpKind::gather},
    {"gathersingle", OpKind::gather},
    {"scatter", OpKind::scatter},
    {"scatterv", OpKind::scatter},
    {"scattersingle", OpKind::scatter},
    {"send", OpKind::send},
    {"recv", OpKind::recv},
    {"recvanysource", OpKind::recv},
    {"split", OpKind::split_group},
});

constexpr auto kTypes = std::to_array<Word<DataType>>({
    {"Float", DataType::f32},
    {"BFloat16", DataType::bf16},
    {"Half", DataType::f16},
    {"Double", DataType::f64},
    {"Int", DataType::i32},
    {"Long", DataType::i64},
    {"Short", DataType::i16},
    {"Byte", DataType::u8},
    {"Char", DataType::i8},
    {"Bool", DataType::boolean},
    {"UInt16", DataType::u16},
    {"UInt32", DataType::u32},
    {"UInt64", DataType::u64},
    {"Float8_e4m3fn", DataType::f8e4m3},
    {"Float8_e5m2", DataType::f8e5m2},
    {"ComplexFloat", DataType::complex64},
    {"ComplexDouble", DataType::complex128},
});

template <class Value, std::size_t kSize>
Value find(const std::array<Word<Value>, kSize>& words, std::string_view text, Value otherwise) {
  const auto at = std::find_if(words.begin(), words.end(), [&](const auto& word) { return word.text == text; });
  return at == words.end() ? otherwise : at->value;
}

std::string plain(std::string_view name) {
  std::string text;
  for (char c : name) {
    if (c != '_') text += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return text;
}

// Reads a whole number at the front of `text` and takes it off.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

void skip_spaces(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

}  // namespace

RecorderField recorder_field(std::string_view key) { return find(kFields, key, Field::unknown); }

RecorderSection recorder_section(std::string_view key) {
  if (key == "version") return RecorderSection::version;
  if (key == "pg_config") return RecorderSection::config;
  if (key == "pg_status") return RecorderSection::status;
  if (key == "entries") return RecorderSection::entries;
  // "nccl_version" became "comm_lib_version"; other vendors' recorders have their own prefix.
  if (key.ends_with("_version")) return RecorderSection::library_version;
  if (key.ends_with("_comm_state")) return RecorderSection::ignored;
  return RecorderSection::unknown;
}

ProfilingName parse_profiling_name(std::string_view text) {
  ProfilingName parsed;
  std::string_view ranks;
  if (const std::size_t space = text.find(' '); space != std::string_view::npos) {
    ranks = text.substr(space + 1);
    text = text.substr(0, space);
  }
  parsed.name = text;
  std::string_view op = text;
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    parsed.backend = text.substr(0, colon);
    op = text.substr(colon + 1);
  }
  std::string word = plain(op);
  if (word == "coalesced") {
    parsed.kind = OpKind::coalesced;
    return parsed;
  }
  if (word.ends_with("coalesced")) {
    parsed.may_end_batch = true;
    word.resize(word.size() - std::string_view("coalesced").size());
  }
  parsed.kind = find(kOps, word, OpKind::unknown);
  if (!is_p2p(parsed.kind)) return parsed;
  // "send 0->1" means from 0 to 1; "recv 1<-0" means at 1 from 0: the peer is the second number of either.
  if (take_number(ranks) && take(ranks, parsed.kind == OpKind::send ? "->" : "<-")) parsed.peer = take_number(ranks);
  return parsed;
}

bool is_stream_ordered(std::string_view backend) {
  constexpr std::array<std::string_view, 8> kStreamed{"nccl",  "ncclx", "nccl2", "rccl",
                                                      "rcclx", "xccl",  "mccl",  "hccl"};
  return std::find(kStreamed.begin(), kStreamed.end(), backend) != kStreamed.end();
}

DataType recorder_data_type(std::string_view name) { return find(kTypes, name, DataType::unknown); }

std::optional<std::vector<RankId>> parse_rank_list(std::string_view text) {
  skip_spaces(text);
  const bool bracket = take(text, "[");
  std::vector<RankId> ranks;
  skip_spaces(text);
  while (!text.empty() && text.front() != ']') {
    if (!ranks.empty() && !take(text, ",")) return std::nullopt;
    skip_spaces(text);
    const auto rank = take_number(text);
    if (!rank || *rank < 0 || *rank > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
    ranks.emplace_back(*rank);
    skip_spaces(text);
  }
  if (bracket != take(text, "]")) return std::nullopt;
  skip_spaces(text);
  if (!text.empty()) return std::nullopt;
  return ranks;
}

std::optional<std::int64_t> parse_recorder_number(std::string_view text) {
  const auto number = take_number(text);
  return text.empty() ? number : std::nullopt;
}

std::optional<std::pair<std::uint32_t, std::uint32_t>> parse_recorder_version(std::string_view text) {
  const auto major = take_number(text);
  if (!major || !take(text, ".")) return std::nullopt;
  const auto minor = take_number(text);
  constexpr std::int64_t kMost = 1'000'000;
  if (!minor || *major < 0 || *minor < 0 || *major > kMost || *minor > kMost) return std::nullopt;
  return std::pair{static_cast<std::uint32_t>(*major), static_cast<std::uint32_t>(*minor)};
}

}  // namespace ddx::formats
