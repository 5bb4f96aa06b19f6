// A whole job from the records of some of its ranks.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/ids.h"
#include "base/rank_set.h"
#include "sim/replay/virtual_ranks.h"

namespace ddx::sim {
namespace {

// Members first, first + stride, ...
struct Pattern {
  std::int64_t stride = 1;
  std::int64_t size = 1;
};

std::optional<Pattern> pattern_of(const std::vector<RankId>& members) {
  if (members.empty()) return std::nullopt;
  if (members.size() == 1) return Pattern{1, 1};
  const std::int64_t stride = std::int64_t{members[1].value} - members[0].value;
  if (stride <= 0) return std::nullopt;
  for (std::size_t i = 1; i < members.size(); ++i) {
    if (std::int64_t{members[i].value} - members[i - 1].value != stride) return std::nullopt;
  }
  return Pattern{stride, static_cast<std::int64_t>(members.size())};
}

std::optional<std::uint32_t> position_in(const Communicator& communicator, RankId rank) {
  const auto at = std::find(communicator.members.begin(), communicator.members.end(), rank);
  if (at == communicator.members.end()) return std::nullopt;
  return static_cast<std::uint32_t>(at - communicator.members.begin());
}

// A group that a rank without a record must be in.
struct Seat {
  CommId comm;
  std::uint32_t position = 0;
  bool inferred = false;  // by the pattern of another rank's group
};

class Lifter {
 public:
  explicit Lifter(Trace& trace) : trace_(trace) {}
  Assumptions run();

 private:
  void add(RankId rank);
  std::optional<std::vector<Seat>> seats(const RankRecord& record, RankId rank);
  std::optional<Seat> seat(CommId comm, RankId rank);
  std::optional<CommId> sibling(CommId comm, RankId rank) const;
  const std::set<std::uint16_t>& placed_slots(ProgramId program);
  Assumptions told() const;

  Trace& trace_;
  std::int64_t world_ = 0;
  std::size_t recorded_ = 0;
  std::map<ProgramId, std::set<std::uint16_t>> placed_slots_;
  std::map<RankId, std::vector<RankId>> stand_ins_;  // by recorded rank: whom it stands for
  std::set<std::string> inferred_;                   // names of groups found by pattern
  std::string obstacle_;                             // why the last recorded rank that was tried does not serve
};

// Groups in which the place of a rank decides what it does: those with sends and receives.
const std::set<std::uint16_t>& Lifter::placed_slots(ProgramId program) {
  const auto [at, fresh] = placed_slots_.try_emplace(program);
  if (!fresh) return at->second;
  const Program& rows = trace_.programs[program.value];
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (is_p2p(trace_.signature(rows.signature(row)).kind) && rows.comm_slot(row))
      at->second.insert(*rows.comm_slot(row));
  }
  return at->second;
}

// A group of the trace that is to `rank` what `comm` is to its members: as large, and described alike.
std::optional<CommId> Lifter::sibling(CommId comm, RankId rank) const {
  const Communicator& known = trace_.communicator(comm);
  const auto base = [&](const Communicator& c) {
    const std::string_view text = trace_.text(c.description.value != 0 ? c.description : c.name);
    return text.substr(0, text.find_last_not_of("0123456789_") + 1);
  };
  for (std::uint32_t c = 0; c < trace_.communicators().size(); ++c) {
    const Communicator& other = trace_.communicators()[c];
    if (other.members.size() != known.members.size() || base(other) != base(known) || base(known).empty()) continue;
    if (position_in(other, rank)) return CommId(c);
  }
  return std::nullopt;
}

std::optional<Seat> Lifter::seat(CommId comm, RankId rank) {
  if (const auto position = position_in(trace_.communicator(comm), rank)) return Seat{comm, *position, false};
  if (const auto other = sibling(comm, rank)) {
    return Seat{*other, *position_in(trace_.communicator(*other), rank), false};
  }
  const auto pattern = pattern_of(trace_.communicator(comm).members);
  if (!pattern) return std::nullopt;
  const std::int64_t digit = rank.value / pattern->stride % pattern->size;
  const std::int64_t first = rank.value - digit * pattern->stride;
  if (first + (pattern->size - 1) * pattern->stride >= world_) return std::nullopt;
  Communicator made = trace_.communicator(comm);
  for (std::int64_t i = 0; i < pattern->size; ++i) {
    made.members[static_cast<std::size_t>(i)] = RankId(first + i * pattern->stride);
  }
  return Seat{trace_.intern(std::move(made)), static_cast<std::uint32_t>(digit), true};
}

// Where `rank` would sit if it ran this record's program; nullopt where it cannot.
std::optional<std::vector<Seat>> Lifter::seats(const RankRecord& record, RankId rank) {
  std::vector<Seat> found;
  for (std::size_t slot = 0; slot < record.comms.size(); ++slot) {
    const CommId comm = record.comms[slot];
    const auto made = seat(comm, rank);
    const std::string name(trace_.text(trace_.communicator(comm).name));
    if (!made) {
      obstacle_ = fmt::format("which group is to rank {} what {} is to rank {} cannot be told", rank.value, name,
                              record.rank->value);
      return std::nullopt;
    }
    const bool placed = placed_slots(record.program).contains(static_cast<std::uint16_t>(slot));
    if (placed && made->position != record.comm_rank[slot]) {
      obstacle_ = fmt::format(
          "rank {} is at place {} of group {}, in which ranks send and receive, and no recorded "
          "rank is there",
          rank.value, made->position, name);
      return std::nullopt;
    }
    found.push_back(*made);
  }
  return found;
}

// The recorded rank that is at the same place in the most groups; of several the first.
void Lifter::add(RankId rank) {
  std::optional<std::size_t> best;
  std::vector<Seat> taken;
  std::size_t most = 0;
  for (std::size_t i = 0; i < recorded_; ++i) {
    auto found = seats(trace_.ranks[i], rank);
    if (!found) continue;
    std::size_t alike = 0;
    for (std::size_t slot = 0; slot < found->size(); ++slot) {
      alike += (*found)[slot].position == trace_.ranks[i].comm_rank[slot] ? 1U : 0U;
    }
    if (best && alike <= most) continue;
    best = i;
    most = alike;
    taken = std::move(*found);
  }
  if (!best) {
    throw Error(
        fmt::format("nothing is recorded of rank {}, and no recorded rank can stand for it: {}. Record one "
                    "rank of each stage, or all",
                    rank.value, obstacle_));
  }
  RankRecord made = trace_.ranks[*best];
  stand_ins_[*made.rank].push_back(rank);
  made.rank = rank;
  made.pid.reset();
  made.host.clear();
  for (std::size_t slot = 0; slot < taken.size(); ++slot) {
    made.comms[slot] = taken[slot].comm;
    made.comm_rank[slot] = taken[slot].position;
    if (taken[slot].inferred) inferred_.emplace(trace_.text(trace_.communicator(taken[slot].comm).name));
  }
  trace_.ranks.push_back(std::move(made));
}

Assumptions Lifter::told() const {
  Assumptions said;
  for (const auto& [rank, others] : stand_ins_) {
    said.push_back(fmt::format("{} {} what rank {} was recorded to do", RankSet(others).label(8),
                               others.size() == 1 ? "does" : "do", rank.value));
  }
  if (!inferred_.empty()) {
    said.push_back(
        fmt::format("the members of {} on other ranks follow the recorded pattern", fmt::join(inferred_, ", ")));
  }
  return said;
}

Assumptions Lifter::run() {
  world_ = trace_.world_size.value_or(static_cast<std::uint32_t>(trace_.ranks.size()));
  if (world_ > kMaxRanks) throw Error(fmt::format("a world of {} ranks: expected at most {}", world_, kMaxRanks));
  std::set<RankId> there;
  for (const RankRecord& record : trace_.ranks) {
    if (!record.rank) throw Error("a record does not say of which rank it is");
    if (record.comm_rank.size() != record.comms.size()) throw Error("a record does not say its places in its groups");
    there.insert(*record.rank);
  }
  recorded_ = trace_.ranks.size();
  if (recorded_ == 0) throw Error("there is no rank to lay over others");
  for (std::int64_t r = 0; r < world_; ++r) {
    if (!there.contains(RankId(r))) add(RankId(r));
  }
  return told();
}

}  // namespace

Assumptions lift(Trace& trace) { return Lifter(trace).run(); }

}  // namespace ddx::sim
