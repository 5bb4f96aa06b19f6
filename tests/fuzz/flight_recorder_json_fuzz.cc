// Any bytes as a flight-recorder JSON dump: an Error, or evidence whose parts fit together.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/error.h"
#include "traces/formats/flight_recorder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ddx::Evidence evidence;
  evidence.inputs.emplace_back().path = "rank_0";
  const auto importer = ddx::formats::flight_recorder_json_importer();
  (void)importer.sniff("rank_0", bytes);
  try {
    importer.read({"rank_0", bytes}, {}, evidence);
  } catch (const ddx::Error&) {
    return 0;
  }
  DDX_CHECK(evidence.trace.ranks.size() == 1);
  const ddx::RankRecord& record = evidence.trace.ranks.front();
  const ddx::Program& program = evidence.trace.program(record);
  DDX_CHECK(program.size() <= size);
  DDX_CHECK(record.comm_rank.size() == record.comms.size() && record.progress.size() == record.comms.size());
  for (std::size_t row = 0; row < program.size(); ++row) {
    const ddx::Op op = program.at(ddx::OpId(row));
    DDX_CHECK(op.signature.value < evidence.trace.signatures().size());
    DDX_CHECK(!op.comm_slot || *op.comm_slot < record.comms.size());
    DDX_CHECK(!op.call_site || op.call_site->value < evidence.trace.call_sites().size());
    const auto slot = evidence.trace.signature(op.signature).peer_slot;
    DDX_CHECK(!slot || *slot < record.peers.size());
  }
  return 0;
}
