// What the operations of a replay take. CostModel is the extension point: closed forms of a cluster, a flat network.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/step_network.h"
#include "sim/collectives/work.h"
#include "sim/engine/picos.h"
#include "sim/network/network.h"
#include "traces/model/trace.h"

namespace ddx::sim {

// A part of a link, or of something else that several operations may want at once: kWholeResource is all that it can
// do. More is possible: then the resource alone makes an operation slower than its price.
constexpr std::uint64_t kWholeResource = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostOfResource = kWholeResource << 11;
constexpr std::uint32_t kNoResource = 0xffffffff;  // the number of none
struct ResourceUse {
  std::uint16_t kind = 0;
  std::uint64_t part = kWholeResource;  // at most kMostOfResource
  bool operator==(const ResourceUse&) const = default;
};

// What an operation takes when it is alone, and what it keeps busy for price.transfer of that time.
struct Cost {
  Price price;
  std::vector<ResourceUse> uses;           // of each member's resources; of a transfer: the sender's
  std::vector<ResourceUse> receiver_uses;  // of a transfer
  // Of a root's resources, where `uses` holds for the others only.
  std::optional<std::vector<ResourceUse>> root_uses = std::nullopt;
  // And of the member before the root, counted round: the end of a chain from the root, which passes nothing on.
  std::optional<std::vector<ResourceUse>> last_uses = std::nullopt;
};

// The part of a link that `bytes` in `time` take.
ResourceUse use_of(std::uint16_t kind, double bytes, Picos time, double bytes_per_second);

// What a StepNetwork needs of a call.
struct StepWork {
  const Algorithm* algorithm = nullptr;
  Work work;
  std::vector<std::uint32_t> places;  // on the network, by position in the communicator
  Pace pace;
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  // What times are reckoned with, for people: "a flat network of 50 GB/s and 1 us".
  virtual std::string name() const = 0;
  // Communicators of one mark cost alike for all work, and so do pairs of ranks: what of the hardware folding has to
  // tell apart.
  virtual std::uint64_t mark(const Communicator& communicator) const = 0;
  virtual std::uint64_t mark(RankId from, RankId to) const = 0;
  // nullopt: the model has no price for it. Throws Error where it has one below bound().
  std::optional<Cost> collective(const Communicator& communicator, const Work& work) const;
  std::optional<Cost> transfer(RankId from, RankId to, std::uint64_t bytes) const;
  // The resources of a rank, by kind, as many for every rank: two ranks of one number share one; kNoResource: it has
  // none of that kind. Empty: nothing is ever in anybody's way.
  virtual std::vector<std::uint32_t> resources(RankId rank) const = 0;
  // Whether everything is simulated message by message: then every rank is run, and network() and steps() are asked
  // instead of collective() and transfer().
  virtual bool by_steps() const { return false; }
  // What of the calls that it was asked about it took for something else, for people: sentences without an end.
  virtual std::vector<std::string> notes() const { return {}; }
  // The links of so many ranks.
  virtual std::optional<Network> network(std::uint32_t) const { return std::nullopt; }
  virtual std::optional<StepWork> steps(const Communicator&, const Work&) const { return std::nullopt; }
  virtual std::optional<StepWork> steps(RankId, RankId, std::uint64_t) const { return std::nullopt; }

 protected:
  virtual std::optional<Cost> cost_of(const Communicator& communicator, const Work& work) const = 0;
  virtual std::optional<Cost> cost_of(RankId from, RankId to, std::uint64_t bytes) const = 0;
  // The least time in which the ports of two ranks or more can carry what the call must move, as `price` has it carried
  // out.
  virtual Picos bound(std::span<const RankId> members, const Work& work, const Price& price) const = 0;
};

constexpr std::uint64_t kWholeLength = 1'000'000'000'000;

struct Timing {
  const CostModel* costs = nullptr;  // absent: no times; must outlive the replay
  // By record: a computation takes so much of its length; kWholeLength: all of it, at most 2^20 times that. Empty: all.
  std::vector<std::uint64_t> compute_factors;
  // Standard deviation of a computation's length, in millionths of it: each rank's and operation's is drawn by itself
  // from a bell curve of three deviations each way, never below nothing. 0: none; else no rank is like another.
  std::uint32_t noise_ppm = 0;
  std::uint64_t seed = 1;
};

// A number from about -3,000,000 to 3,000,000 with a standard deviation of 1,000,000, the same for the same arguments
// on every machine.
std::int64_t noise_at(std::uint64_t seed, std::int32_t rank, std::uint32_t op);

// What a call moves, as cost models count it; `members` of its communicator. nullopt: its counts or type are not known.
std::optional<Work> work_of(const Signature& signature, std::uint32_t members);
// Of a send or receive.
std::optional<std::uint64_t> bytes_of(const Signature& signature);

}  // namespace ddx::sim
