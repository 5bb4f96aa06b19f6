// Reads a dump from memory, and prints what came of it, one line an operation, so that a test's expectation is text.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "traces/formats/flight_recorder.h"

namespace ddx::testing {

inline Evidence read_dump(const std::string& bytes, const std::string& path = "dumps/rank_0",
                          const formats::ImportOptions& options = {}) {
  Evidence evidence;
  evidence.inputs.emplace_back().path = path;
  const auto importer =
      bytes.starts_with('\x80') ? formats::flight_recorder_pickle_importer() : formats::flight_recorder_json_importer();
  importer.read({path, bytes}, options, evidence);
  return evidence;
}

inline std::string data_file(const std::string& name) {
  std::ifstream in(DDX_SOURCE_DIR "/tests/traces/formats/flight_recorder/data/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <class Optional>
std::string shown(const Optional& value) {
  return value ? fmt::format("{}", *value) : "-";
}

// "all_reduce nccl:all_reduce pg=0 seq=3 group=- 64>64 f32>f32 peer=- started"
inline std::string row_text(const Trace& trace, const RankRecord& record, std::size_t row) {
  const Op op = trace.program(record).at(OpId(row));
  const Signature& call = trace.signature(op.signature);
  const std::string group =
      op.comm_slot ? std::string(trace.text(trace.communicator(record.comms[*op.comm_slot]).name)) : "-";
  return fmt::format("{} {} pg={} seq={} group={} {}>{} {}>{} peer={} {}{}", name_of(call.kind), trace.text(call.name),
                     group, shown(op.seq), shown(op.group), shown(call.count_in), shown(call.count_out),
                     name_of(call.type_in), name_of(call.type_out), shown(trace.peer(record, call)), name_of(op.state),
                     op.retired ? " retired" : "");
}

inline std::vector<std::string> row_texts(const Evidence& evidence) {
  std::vector<std::string> texts;
  const RankRecord& record = evidence.trace.ranks.front();
  for (std::size_t row = 0; row < evidence.trace.program(record).size(); ++row) {
    texts.push_back(row_text(evidence.trace, record, row));
  }
  return texts;
}

// "0 default_pg [0,1,2] position 1 progress 9/0/8"
inline std::vector<std::string> group_texts(const Evidence& evidence) {
  std::vector<std::string> texts;
  const Trace& trace = evidence.trace;
  const RankRecord& record = trace.ranks.front();
  for (std::size_t slot = 0; slot < record.comms.size(); ++slot) {
    const Communicator& group = trace.communicator(record.comms[slot]);
    std::string members;
    for (RankId rank : group.members) members += fmt::format("{}{}", members.empty() ? "" : ",", rank.value);
    const CommProgress& progress = record.progress[slot];
    const std::uint32_t position = record.comm_rank[slot];
    texts.push_back(
        fmt::format("{} {} [{}] position {} progress {}/{}/{}", trace.text(group.name), trace.text(group.description),
                    members, position == RankRecord::kNoPosition ? "-" : fmt::format("{}", position),
                    shown(progress.last_enqueued), shown(progress.last_started), shown(progress.last_completed)));
  }
  return texts;
}

}  // namespace ddx::testing
