// What must hold of any bytes that an importer of programs is given: an Error, or records whose parts fit together and
// that can be written down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/error.h"
#include "traces/formats/importer.h"
#include "traces/formats/perfetto_writer.h"

namespace ddx::testing {

inline int check_importer(const formats::Importer& importer, const std::string& path, std::string_view bytes) {
  Evidence evidence;
  evidence.inputs.emplace_back().path = path;
  (void)importer.sniff(path, bytes);
  formats::ImportOptions options;
  options.max_ops_per_file = 20'000;
  try {
    importer.read({path, bytes}, options, evidence);
  } catch (const Error&) {
    return 0;
  }
  const Trace& trace = evidence.trace;
  for (const RankRecord& record : trace.ranks) {
    const Program& program = trace.program(record);
    DDX_CHECK(record.comm_rank.size() == record.comms.size() && record.progress.size() == record.comms.size());
    for (std::size_t row = 0; row < program.size(); ++row) {
      const Op op = program.at(OpId(row));
      DDX_CHECK(op.signature.value < trace.signatures().size());
      DDX_CHECK(!op.comm_slot || *op.comm_slot < record.comms.size());
      const auto slot = trace.signature(op.signature).peer_slot;
      DDX_CHECK(!slot || *slot < record.peers.size());
    }
  }
  std::ostringstream timeline;
  formats::write_perfetto(trace, timeline, {2'000, 1'000});
  return 0;
}

}  // namespace ddx::testing
