// Schedule: an algorithm as what each participant does, step by step. Asked for one step at a time and never held
// whole: a ring of 4,096 ranks sends 33.5 million messages.
#pragma once

#include <cstdint>
#include <vector>

namespace ddx::sim {

struct Send {
  std::uint32_t to = 0;       // the agent that gets it
  std::uint32_t to_step = 0;  // the step of that agent that cannot end before it has come
  std::uint64_t bytes = 0;
  // It takes bytes / slot_bytes of a port, so as long as slot_bytes alone would: a pipeline in which several messages
  // go through a port all the time gives each its part of it. Equal to `bytes`: all of the port.
  std::uint64_t slot_bytes = 0;
  bool awaits_receiver = false;  // begins when the receiver is in that step (rendezvous), not before
};

struct Step {
  std::vector<Send> sends;  // all begin at once
  std::uint32_t receives = 0;
};

// An agent goes through its steps one after another, each over when its sends have left the ports and its receives have
// come. A member has one agent or several (threads of its own that share its ports); it begins and ends with all of
// them.
class Schedule {
 public:
  Schedule() = default;
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;
  virtual ~Schedule() = default;

  virtual std::uint32_t agents() const = 0;
  // 0 to n - 1: a member of the communicator; from n on: a switch that reduces, and never holds anybody up.
  virtual std::uint32_t member_of(std::uint32_t agent) const = 0;
  virtual std::uint32_t steps(std::uint32_t agent) const = 0;
  // Fills in `step`, which is empty.
  virtual void step(std::uint32_t agent, std::uint32_t index, Step& step) const = 0;
};

}  // namespace ddx::sim
