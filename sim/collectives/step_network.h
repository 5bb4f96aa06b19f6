// StepNetwork: the steps of collectives as events on the links of a network, every message, in integers, the same bytes
// out on every machine. Messages that meet on a link share it max-min fairly, whichever call they belong to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/collectives/algorithm.h"

namespace ddx::sim {

// How a call goes where not as the links alone have it.
struct Pace {
  static constexpr std::uint64_t kWhole = 1'000'000'000;
  Picos launch = 0;                // between a member's coming and its first step
  std::uint64_t bytes = kWhole;    // on the links for kWhole that are to be moved: protocols, links that are not filled
  std::uint64_t latency = kWhole;  // of the links' latency
  std::uint32_t channels = 1;      // channels.h
};

// As many to a node as the network puts there, if every node has as many; else each is one of its own.
Members members_on(const Network& network, std::span<const std::uint32_t> ranks);

// Calls come and go. A call that has the network for itself, whose members come at one time, and like which there has
// been one before, takes what that one took, without a step.
class StepNetwork {
 public:
  using CallId = std::uint32_t;
  struct End {
    CallId call = 0;
    std::uint32_t member = 0;
    Picos time = 0;
  };

  explicit StepNetwork(const Network& network);
  ~StepNetwork();
  StepNetwork(const StepNetwork&) = delete;
  StepNetwork& operator=(const StepNetwork&) = delete;

  // A call of so many members, of which none has come; ranks[i]: where on the network member i sits, each rank once.
  // Calls of one number `alike` are alike in all of this and in their pace. An Error where the algorithm does not run
  // for these, or later where a message has more than kMostBytes bytes. The id is free again once all members have
  // ended.
  CallId begin(const Algorithm& algorithm, const Work& work, std::vector<std::uint32_t> ranks,
               std::optional<std::uint64_t> alike = {}, const Pace& pace = {});
  // A member comes to the call: at 0 or later, not before what advance() came to last. Each member comes once.
  void arrive(CallId call, std::uint32_t member, Picos time);

  // Goes on to the next time at which something happens, and gives the members that are done then, by call and member.
  // False: nothing is under way. Members that have not come are waited for.
  bool advance(std::vector<End>& ends);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace ddx::sim
