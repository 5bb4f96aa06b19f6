// Any bytes as a log. The first byte chooses what the path says.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "traces/formats/log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddx;
  static constexpr const char* kPaths[] = {"job.log", "logs/rank3.log", "attempt_1/2/stderr.log", "node4.log"};
  if (size == 0) return 0;
  const std::string path = kPaths[data[0] % 4];
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const formats::Importer importer = formats::log_importer();
  importer.sniff(path, bytes);
  Evidence evidence;
  evidence.inputs.emplace_back();
  evidence.inputs.front().path = path;
  formats::ImportOptions options;
  options.max_events_per_file = 10'000;
  options.max_ops_per_file = 10'000;
  importer.read({path, bytes}, options, evidence);
  std::uint64_t line = 0;
  for (const LogEvent& event : evidence.events) {
    DDX_CHECK(event.text.size() <= 400);
    DDX_CHECK(event.line >= line && event.line > 0);
    line = event.line;
  }
  for (const RankRecord& record : evidence.trace.ranks) {
    DDX_CHECK(record.comms.size() == record.comm_rank.size());
    const Program& program = evidence.trace.program(record);
    for (std::size_t row = 0; row < program.size(); ++row) {
      DDX_CHECK(program.comm_slot(row) && *program.comm_slot(row) < record.comms.size());
      evidence.trace.peer(record, evidence.trace.signature(program.signature(row)));
    }
  }
  return 0;
}
