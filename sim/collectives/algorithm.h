// Algorithm: one way to carry out collectives, known in two forms that agree to the picosecond on a flat network: its
// steps (Schedule) and a closed form.
//
// Bytes are indivisible and blocks are alike: where an algorithm cuts a buffer of S bytes into k, each has ceil(S / k).
// A flat network: every rank has one full-duplex port of B bytes a second; a message holds the sender's way out and the
// receiver's way in for bytes / B, and arrives L later. Reducing takes no time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "sim/cluster/cluster.h"
#include "sim/collectives/schedule.h"
#include "sim/collectives/work.h"
#include "sim/network/network.h"

namespace ddx::sim {

struct Members {
  std::uint32_t ranks = 1;
  // Of one node (NVLink domain), for algorithms that reduce in switches; divides `ranks`.
  std::uint32_t per_node = 1;
  bool flat = true;  // one switch for all
};

struct Algorithm {
  std::string_view name;
  std::span<const OpKind> kinds;
  // Whether it can be carried out by these members; nullptr: by any.
  bool (*fits)(const Members& members);
  std::unique_ptr<Schedule> (*schedule)(const Work& work, const Members& members);
  // On a flat network; saturates at kForever.
  Price (*price)(const Work& work, const Members& members, const LinkSpec& port);
  // The most that leaves one rank.
  std::uint64_t (*bytes_sent)(const Work& work, const Members& members);
  // Where it reduces or copies in the network.
  std::optional<SwitchPlace> reduces_in;

  bool runs(OpKind kind, const Members& members) const;
};

// All, in the order of the registry.
std::span<const Algorithm> algorithms();
// nullptr where there is none of that name.
const Algorithm* find_algorithm(std::string_view name);
std::vector<const Algorithm*> algorithms_for(OpKind kind);

// On a flat network without nodes, algorithms that reduce in switches take 8 ranks for a node, or all where 8 does not
// divide them.
Members flat_members(std::uint32_t ranks);

// The closed form: ranks 1 or more, and algorithm.runs(work.kind, flat_members(ranks)); else an Error.
Price flat_price(const Work& work, std::uint32_t ranks, const LinkSpec& port, const Algorithm& algorithm);

// What `library` would take on a flat network; docs/algorithms.md has the rules. nullptr where it has nothing for that
// kind (no collective, or send and recv of other than two ranks).
const Algorithm* choose_algorithm(const Work& work, std::uint32_t ranks, Library library);

}  // namespace ddx::sim
