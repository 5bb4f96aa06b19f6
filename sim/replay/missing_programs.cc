#include "sim/replay/missing_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.h"
#include "base/rank_set.h"

namespace ddx::sim {
namespace {

constexpr std::size_t kMostGroups = 4;  // told by name

// Formats that have a file, or rows, for each rank, and do not say who is absent.
bool by_rank(const Evidence& evidence, const RankRecord& record) {
  if (!record.input || record.input->value >= evidence.inputs.size()) return false;
  const std::string& format = evidence.inputs[record.input->value].format;
  return format == "chakra" || format == "op-table";
}

RankSet ranks_of(const Trace& trace) {
  std::vector<RankId> ranks;
  for (const RankRecord& record : trace.ranks) {
    if (record.rank) ranks.push_back(*record.rank);
  }
  return RankSet(std::move(ranks));
}

// Members of the groups that are in use, and all ranks below the largest.
RankSet needed(const Evidence& evidence, const RankSet& there) {
  const Trace& trace = evidence.trace;
  std::vector<bool> used(trace.communicators().size(), false);
  for (const RankRecord& record : trace.ranks) {
    for (const CommId comm : record.comms) used[comm.value] = true;
  }
  std::vector<RankId> ranks;
  for (std::size_t i = 0; i < used.size(); ++i) {
    const auto& members = trace.communicators()[i].members;
    if (used[i]) ranks.insert(ranks.end(), members.begin(), members.end());
  }
  RankSet all(std::move(ranks));
  all.insert(there);
  if (trace.world_size && *trace.world_size > 0 && *trace.world_size <= kMaxRanks) {
    all.insert(RankId(std::int64_t{*trace.world_size} - 1));
  }
  if (!all.empty() && *(all.end() - 1) >= RankId(0)) all.insert(RankSet::range(RankId(0), *(all.end() - 1)));
  return all;
}

// Who sends to, or receives from, each rank of `missing`.
std::map<RankId, std::set<RankId>> partners(const Trace& trace, const RankSet& missing) {
  std::map<RankId, std::set<RankId>> found;
  for (const RankRecord& record : trace.ranks) {
    const Program& program = trace.program(record);
    for (std::size_t row = 0; row < program.size(); ++row) {
      const Signature& signature = trace.signature(program.signature(row));
      const auto slot = program.comm_slot(row);
      const auto peer = trace.peer(record, signature);
      if (!is_p2p(signature.kind) || !slot || !peer || *peer < 0) continue;
      const auto& members = trace.communicator(record.comms[*slot]).members;
      if (static_cast<std::size_t>(*peer) >= members.size()) continue;
      const RankId rank = members[static_cast<std::size_t>(*peer)];
      if (missing.contains(rank)) found[rank].insert(*record.rank);
    }
  }
  return found;
}

// The file of a rank that could not be read.
const Input* lost_file(const Evidence& evidence, const RankSet& missing) {
  for (const Input& input : evidence.inputs) {
    if (input.file_rank && !input.note.empty() && missing.contains(*input.file_rank)) return &input;
  }
  return nullptr;
}

bool has_collectives(const Trace& trace, const RankRecord& record) {
  const Program& program = trace.program(record);
  for (std::size_t row = 0; row < program.size(); ++row) {
    if (is_collective(trace.signature(program.signature(row)).kind)) return true;
  }
  return false;
}

// Every member's position in it is its rank.
bool is_world(const Communicator& communicator, std::size_t ranks) {
  return communicator.assumed && communicator.members.size() == ranks;
}

}  // namespace

std::string missing_programs(const Evidence& evidence) {
  const Trace& trace = evidence.trace;
  const bool told_apart = std::all_of(trace.ranks.begin(), trace.ranks.end(), [&](const RankRecord& record) {
    return record.rank && by_rank(evidence, record);
  });
  if (!told_apart) return {};
  const RankSet there = ranks_of(trace);
  const RankSet missing = needed(evidence, there).without(there);
  if (missing.empty()) return {};
  if (const Input* input = lost_file(evidence, missing)) {
    return fmt::format("the file of rank {} could not be used ({}: {}), and what the others do hangs on it",
                       input->file_rank->value, input->path, input->note);
  }
  const std::string& format = evidence.inputs[trace.ranks.front().input->value].format;
  std::string text =
      fmt::format("no {} for {}, only for {}", format == "op-table" ? "row" : "file", missing.label(8), there.label(8));
  const auto named = partners(trace, missing);
  if (named.empty()) return text;
  const auto& [rank, others] = *named.begin();
  const RankSet by(std::vector<RankId>(others.begin(), others.end()));
  return text + fmt::format(": {} {} to send to rank {} or to receive from it", by.label(8),
                            by.size() == 1 ? "is" : "are", rank.value);
}

std::string unproven_groups(const Trace& trace) {
  std::map<CommId, std::vector<RankId>> users;
  for (const RankRecord& record : trace.ranks) {
    for (const CommId comm : record.comms) {
      if (trace.communicator(comm).assumed && record.rank) users[comm].push_back(*record.rank);
    }
  }
  std::string subgroups;
  std::size_t count = 0;
  for (const auto& [comm, ranks] : users) {
    if (is_world(trace.communicator(comm), trace.ranks.size())) continue;
    if (++count > kMostGroups) continue;
    subgroups += fmt::format("{}{} (used by {})", subgroups.empty() ? "" : ", ",
                             trace.text(trace.communicator(comm).name), RankSet(ranks).label(8));
  }
  if (count > 0) {
    return fmt::format(
        "no file lists the members of group{} {}{}: whether others should make these calls as well is not known",
        count == 1 ? "" : "s", subgroups, count > kMostGroups ? ", ..." : "");
  }
  if (users.empty()) return {};
  const std::size_t ranks = trace.ranks.size();
  if (ranks == 1 && has_collectives(trace, trace.ranks.front())) {
    return fmt::format(
        "the only file is that of rank {}, and nothing says who else makes its calls: give the files of all ranks, or "
        "say --world-size 1",
        trace.ranks.front().rank->value);
  }
  if (ranks > 1 && ranks % 2 == 1) {
    return fmt::format(
        "there are files for ranks 0-{} only, an odd number, and nothing says how many ranks there are: is there no "
        "file for rank {}? If that is all, say --world-size {}",
        ranks - 1, ranks, ranks);
  }
  return {};
}

Assumptions assumed_groups(const Trace& trace) {
  const std::size_t ranks = trace.ranks.size();
  const bool any = std::any_of(trace.communicators().begin(), trace.communicators().end(),
                               [&](const Communicator& c) { return is_world(c, ranks); });
  if (!any) return {};
  return {fmt::format("the job has {} rank{}, those with a file: nothing in the files says how many there are", ranks,
                      ranks == 1 ? "" : "s")};
}

void state_world(Trace& trace) {
  for (std::size_t i = 0; i < trace.communicators().size(); ++i) {
    const Communicator& communicator = trace.communicators()[i];
    if (is_world(communicator, trace.ranks.size())) trace.list_members(CommId(i), communicator.members, false);
  }
}

}  // namespace ddx::sim
