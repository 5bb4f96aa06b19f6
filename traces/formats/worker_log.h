// What supervisors say of a worker that is gone, and PyTorch's watchdog of its own device: Ray, vLLM, SGLang,
// DeepSpeed, Lightning, torch.multiprocessing, Slurm's node failures.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "traces/formats/log_events.h"

namespace ddx::formats {

// Ray describes an actor on the lines behind its error: by stream of lines, the event that is being described.
struct WorkerState {
  struct Actor {
    std::size_t event;
    unsigned lines = 0;
  };
  std::unordered_map<std::uint64_t, Actor> actors;
};

// `interesting`: the filter let the line pass; others only continue what is open. True where the line was one of these.
bool read_worker_line(const LogLine& line, bool interesting, WorkerState& state, LogEventWriter& events);

}  // namespace ddx::formats
