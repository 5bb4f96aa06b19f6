#include "sim/replay/reference_replay.h"

#include "sim/replay/replay_engine.h"

namespace ddx::sim {

std::string_view name_of(ReplayResult::Outcome outcome) {
  switch (outcome) {
    case ReplayResult::Outcome::completes: return "completes";
    case ReplayResult::Outcome::deadlock: return "deadlock";
    case ReplayResult::Outcome::mismatch: return "mismatch";
    case ReplayResult::Outcome::stopped: return "stopped";
    case ReplayResult::Outcome::refused: return "refused";
  }
  return "refused";
}

ReplayResult replay(const Trace& trace, const ReplayOptions& options) {
  ReplayEngine engine(trace, options);
  engine.run();
  return engine.result();
}

}  // namespace ddx::sim
