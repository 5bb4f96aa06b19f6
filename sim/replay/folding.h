// Ranks that must behave alike are replayed once. Two ranks are alike when they run one program and what they are bound
// to is alike, slot by slot: communicators with alike members, channels whose other ends are alike. This is the
// coarsest stable partition of ranks, communicators and channels (colour refinement); every rank of a class does at
// every moment what its representative does.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/replay/timing.h"
#include "sim/replay/unrolled_program.h"
#include "traces/model/trace.h"

namespace ddx::sim {

struct FoldOptions {
  bool merge = true;  // false: every rank is a class of its own
  // By record: records of different labels are kept apart. Empty: none is.
  std::vector<std::uint64_t> labels;
  // Likewise of communicators, and of channels by their ends. Empty: none is.
  std::function<std::uint64_t(const Communicator&)> comm_label;
  std::function<std::uint64_t(RankId from, RankId to)> channel_label;
  // What records share besides: numbers of resources (or kNoResource), `resource_kinds` of them for each record. Empty:
  // nothing.
  std::uint32_t resource_kinds = 0;
  std::vector<std::uint32_t> resources;
};

struct Folding {
  std::vector<std::uint32_t> class_of;        // by record
  std::vector<std::uint32_t> representative;  // by class: its first record

  // Rows of the tables below: slot s of class c is slot_base[c] + s, endpoint e is endpoint_base[c] + e.
  std::vector<std::uint64_t> slot_base, endpoint_base;
  std::vector<std::uint32_t> comm;    // by slot row: class of communicators
  std::vector<std::uint32_t> weight;  // by slot row: ranks of this class that are in one such communicator by this slot
  std::vector<std::uint32_t> channel;  // by endpoint row: class of channels; kNoOp: the peer is no member

  std::vector<std::uint32_t> comm_size;     // by class of communicators: members
  std::vector<CommId> comm_representative;  // by class of communicators: its first one
  // Kind k of class c is row c * resource_kinds + k.
  std::vector<std::uint32_t> resource;         // class of resources
  std::vector<std::uint32_t> resource_weight;  // ranks of this class that use one such resource as this kind; 0: none
  std::uint32_t resources = 0;                 // classes of resources
  std::uint32_t channels = 0;                  // classes of channels
};

// `programs` by ProgramId, unrolled where a record has them. Positions are unique in their communicators. Names in
// `refusal` what cannot be replayed, if anything: a rank that names one peer by two slots.
Folding fold(const Trace& trace, const std::vector<UnrolledProgram>& programs, const FoldOptions& options,
             std::string& refusal);

}  // namespace ddx::sim
