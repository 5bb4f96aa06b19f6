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

namespace {

ReplayResult run(const Trace& trace, const ReplayOptions& options) {
  ReplayEngine engine(trace, options);
  engine.run();
  return engine.result();
}

}  // namespace

ReplayResult replay(const Trace& trace, const ReplayOptions& options) {
  if (options.timing.costs == nullptr || !options.timing.costs->by_steps()) return run(trace, options);
  // Step by step a member can be done before another comes and turns out to disagree: what comes of the programs is
  // found first, which no time changes. Those that do not run to their end have no times then.
  ReplayOptions untimed = options;
  untimed.timing = {};
  untimed.fold = false;
  ReplayEngine first(trace, untimed);
  first.note_unlike();
  first.run();
  ReplayResult result = first.result();
  if (result.outcome != ReplayResult::Outcome::completes) return result;
  ReplayEngine engine(trace, options);
  engine.know_unlike(first.take_unlike());
  engine.run();
  return engine.result();
}

}  // namespace ddx::sim
