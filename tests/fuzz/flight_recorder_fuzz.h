// What must hold of any bytes that a flight-recorder importer is given: an Error, or evidence whose parts fit together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/error.h"
#include "traces/formats/flight_recorder.h"

namespace ddx::testing {

inline int check_flight_recorder(const formats::Importer& importer, const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Evidence evidence;
  evidence.inputs.emplace_back().path = "rank_0";
  (void)importer.sniff("rank_0", bytes);
  try {
    importer.read({"rank_0", bytes}, {}, evidence);
  } catch (const Error&) {
    return 0;
  }
  DDX_CHECK(evidence.trace.ranks.size() == 1);
  const RankRecord& record = evidence.trace.ranks.front();
  const Program& program = evidence.trace.program(record);
  DDX_CHECK(program.size() <= size);
  DDX_CHECK(record.comm_rank.size() == record.comms.size() && record.progress.size() == record.comms.size());
  for (std::size_t row = 0; row < program.size(); ++row) {
    const Op op = program.at(OpId(row));
    DDX_CHECK(op.signature.value < evidence.trace.signatures().size());
    DDX_CHECK(!op.comm_slot || *op.comm_slot < record.comms.size());
    DDX_CHECK(!op.call_site || op.call_site->value < evidence.trace.call_sites().size());
    const auto slot = evidence.trace.signature(op.signature).peer_slot;
    DDX_CHECK(!slot || *slot < record.peers.size());
  }
  return 0;
}

}  // namespace ddx::testing
