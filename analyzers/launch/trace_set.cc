#include "analyzers/launch/trace_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "analyzers/deadlock/wait_text.h"
#include "analyzers/log_view.h"
#include "analyzers/match/job_view.h"
#include "traces/model/group_label.h"

namespace ddx::analyzers {
namespace {

constexpr std::size_t kMostTold = 4;

std::string file_of(const Evidence& evidence, const RankRecord& record) {
  const std::string path = evidence.path(record.input);
  return path.empty() ? "an unnamed file" : path;
}

bool two_claims(const RankRecord& a, const RankRecord& b) {
  const bool other_backend = !a.backend.empty() && !b.backend.empty() && a.backend != b.backend;
  return !other_backend && a.attempt == b.attempt;
}

std::optional<Finding> duplicates(const Evidence& evidence) {
  std::map<RankId, const RankRecord*> first;
  std::map<RankId, std::vector<std::string>> files;  // of ranks with more than one record
  std::vector<RankId> ranks;
  Finding f;
  for (const RankRecord& record : evidence.trace.ranks) {
    if (!record.rank) continue;
    const auto [at, fresh] = first.try_emplace(*record.rank, &record);
    if (fresh || !two_claims(*at->second, record)) continue;
    ranks.push_back(*record.rank);
    std::vector<std::string>& own = files[*record.rank];
    for (const RankRecord* one : {at->second, &record}) {
      std::string file = file_of(evidence, *one);
      if (std::find(own.begin(), own.end(), file) != own.end()) continue;
      if (f.evidence.size() < 2 * kMostTold) {
        f.evidence.push_back({evidence.path(one->input), std::nullopt, fmt::format("has rank {}", record.rank->value)});
      }
      own.push_back(std::move(file));
    }
  }
  if (ranks.empty()) return std::nullopt;
  f.code = "rank-duplicate";
  f.confidence = Confidence::high;
  f.ranks = RankSet(std::move(ranks));
  // Sets of files, each once: many ranks may be in the same two.
  std::vector<std::string> claims;
  std::size_t most = 2;
  for (const auto& [rank, own] : files) {
    most = std::max(most, own.size());
    std::string claim = join_words(own, kMostTold);
    if (std::find(claims.begin(), claims.end(), claim) == claims.end()) claims.push_back(std::move(claim));
  }
  f.summary = fmt::format("{} {} claimed by {} records: {}", f.ranks.label(8), f.ranks.size() == 1 ? "is" : "are",
                          most == 2 ? "two" : "several",
                          fmt::join(std::span(claims).first(std::min(claims.size(), std::size_t{2})), "; "));
  if (claims.size() > 2) f.summary += fmt::format("; and {} more such sets", claims.size() - 2);
  f.explanation = "One rank has one program. Which of them is meant the files do not tell, so nothing was run.\n";
  f.advice =
      "Give one file for each rank, of one run. In an ops file a rank without lines is one that does nothing: name "
      "those that other files have as 'absent'.";
  return f;
}

std::optional<Finding> worlds(const Evidence& evidence) {
  std::map<std::uint32_t, std::vector<RankId>> ranks;
  std::map<std::uint32_t, InputId> files;
  for (const RankRecord& record : evidence.trace.ranks) {
    const Input* input = evidence.input(record.input);
    if (!record.rank || !input || !input->world_size) continue;
    ranks[*input->world_size].push_back(*record.rank);
    files.try_emplace(*input->world_size, *record.input);
  }
  if (ranks.size() < 2) return std::nullopt;
  Finding f;
  f.code = "world-size-disagree";
  f.confidence = Confidence::high;
  f.ranks = minority(ranks);
  std::vector<std::string> parts;
  for (const auto& [size, claimants] : ranks) {
    parts.push_back(fmt::format("{} by {}", format_count(size), RankSet(claimants).label(6)));
    if (parts.size() <= kMostTold) {
      f.evidence.push_back({evidence.path(files[size]), std::nullopt, fmt::format("a world of {}", size)});
    }
  }
  f.summary = "The files do not agree on the world size: " + join_words(parts);
  f.explanation = "They are not of one job, or not of one run of it; nothing was run.\n";
  f.advice = "Give the files of one run only.";
  return f;
}

std::optional<Finding> out_of_range(const Evidence& evidence) {
  const auto world = evidence.trace.world_size;
  Finding f;
  for (const RankRecord& record : evidence.trace.ranks) {
    if (!record.rank || (record.rank->value >= 0 && (!world || record.rank->value < std::int64_t{*world}))) continue;
    f.ranks.insert(*record.rank);
    if (f.evidence.size() == kMostTold) continue;
    f.evidence.push_back({evidence.path(record.input), std::nullopt, fmt::format("has rank {}", record.rank->value)});
  }
  if (f.ranks.empty()) return std::nullopt;
  f.code = "rank-range";
  f.confidence = Confidence::high;
  f.summary = world ? fmt::format("{} cannot be in a world of {}: its ranks are 0-{}", f.ranks.label(8),
                                  format_count(*world), std::int64_t{*world} - 1)
                    : fmt::format("{} cannot be: ranks are counted from 0", f.ranks.label(8));
  f.explanation = "The world size is what the files state, the rank is what a file or its name says.\n";
  f.advice = "See how the files are named (--rank-from), and whether they are of one job.";
  return f;
}

// ---- gaps -----------------------------------------------------------------------------------------------------------

// The ranks that calls need and that have no record.
class Needs {
 public:
  Needs(const Trace& trace, const RankSet& missing) : trace_(trace), missing_(missing) {
    for (const Communicator& comm : trace.communicators()) lacking_.push_back(RankSet(comm.members).common(missing));
    rows_.resize(trace.programs.size());
  }

  void add(const RankRecord& record) {
    for (const Row& row : rows_of(record)) {
      const CommId comm = record.comms[row.slot];
      const RankSet lacking = row.p2p ? partner(record, row) : lacking_[comm.value];
      if (lacking.empty()) continue;
      needed.insert(lacking);
      waiting.push_back(*record.rank);
      const std::pair place(row.row, *record.rank);
      if (!first || place < std::pair(first_row, *first->rank)) {
        first = &record;
        first_row = row.row;
      }
    }
  }

  RankSet needed;
  std::vector<RankId> waiting;
  const RankRecord* first = nullptr;  // who makes the first call of them
  std::uint32_t first_row = 0;

 private:
  // The first collective of each group of a program, and the first send or receive of each peer.
  struct Row {
    std::uint32_t row = 0;
    std::uint16_t slot = 0;
    bool p2p = false;
  };

  const std::vector<Row>& rows_of(const RankRecord& record) {
    std::optional<std::vector<Row>>& rows = rows_[record.program.value];
    if (rows) return *rows;
    rows.emplace();
    const Program& program = trace_.program(record);
    std::map<std::pair<std::uint16_t, std::int64_t>, bool> seen;
    for (std::uint32_t row = 0; row < program.size(); ++row) {
      const Signature& s = trace_.signature(program.signature(row));
      const auto slot = program.comm_slot(row);
      const bool p2p = is_p2p(s.kind);
      if (!slot || *slot >= record.comms.size() || (!p2p && !is_collective(s.kind))) continue;
      const std::int64_t peer = p2p && s.peer_slot ? std::int64_t{*s.peer_slot} : -1;
      if (seen.try_emplace({*slot, peer}, true).second) rows->push_back({row, *slot, p2p});
    }
    return *rows;
  }

  RankSet partner(const RankRecord& record, const Row& row) const {
    const auto peer = trace_.peer(record, trace_.signature(trace_.program(record).signature(row.row)));
    const auto& members = trace_.communicator(record.comms[row.slot]).members;
    if (!peer || *peer < 0 || static_cast<std::size_t>(*peer) >= members.size()) return {};
    const RankId rank = members[static_cast<std::size_t>(*peer)];
    return missing_.contains(rank) ? RankSet{rank} : RankSet();
  }

  const Trace& trace_;
  const RankSet& missing_;
  std::vector<RankSet> lacking_;  // by communicator
  std::vector<std::optional<std::vector<Row>>> rows_;
};

RankSet ranks_without_record(const Trace& trace) {
  std::vector<RankId> recorded, members;
  std::vector<bool> used(trace.communicators().size(), false);
  std::int64_t world = trace.world_size.value_or(0);
  for (const RankRecord& record : trace.ranks) {
    if (!record.rank) return {};  // it may be any of them
    recorded.push_back(*record.rank);
    world = std::max(world, record.rank->value + std::int64_t{1});
    for (const CommId comm : record.comms) {
      if (used[comm.value]) continue;
      used[comm.value] = true;
      const auto& own = trace.communicator(comm).members;
      members.insert(members.end(), own.begin(), own.end());
    }
  }
  RankSet all(std::move(members));
  if (world > 0 && world <= std::int64_t{kMaxRanks})
    all.insert(RankSet::range(RankId(std::int64_t{0}), RankId(world - 1)));
  return all.without(RankSet(std::move(recorded)));
}

Finding missing(const RankSet& ranks) {
  Finding f;
  f.code = "rank-missing";
  f.confidence = Confidence::high;
  f.ranks = ranks;
  f.advice =
      "Give the traces of all ranks, or lay those that there are over the whole job: --world-size N, where ranks do "
      "alike.";
  return f;
}

// Files that were given and gave nothing: what is missing may have been in them.
void cite_empty_files(const Evidence& evidence, Finding& f) {
  std::vector<bool> used(evidence.inputs.size(), false);
  for (const RankRecord& record : evidence.trace.ranks) {
    if (record.input && record.input->value < used.size()) used[record.input->value] = true;
  }
  for (std::size_t i = 0; i < used.size() && f.evidence.size() <= kMostTold; ++i) {
    const Input& input = evidence.inputs[i];
    if (!used[i] && !input.note.empty()) f.evidence.push_back({input.path, std::nullopt, input.note});
  }
}

// The file of one of `ranks` that could not be used; null: none.
const Input* lost_file(const Evidence& evidence, const RankSet& ranks) {
  const auto lost = std::find_if(evidence.inputs.begin(), evidence.inputs.end(), [&](const Input& input) {
    return input.file_rank && !input.note.empty() && ranks.contains(*input.file_rank);
  });
  return lost == evidence.inputs.end() ? nullptr : &*lost;
}

Finding needed_gap(const Evidence& evidence, const Needs& needs) {
  const RankRecord& record = *needs.first;
  const Trace& trace = evidence.trace;
  const Program& program = trace.program(record);
  Finding f = missing(needs.needed);
  f.victims = RankSet(needs.waiting).without(f.ranks);
  const std::string group = group_label(trace, trace.communicator(record.comms[*program.comm_slot(needs.first_row)]));
  const std::string call = fmt::format("{} (group {}, seq {})", describe_call(trace, record, needs.first_row), group,
                                       program.seq(needs.first_row).value_or(1));
  f.subjects = {"group " + group};
  const bool one = f.ranks.size() == 1;
  const Input* lost = lost_file(evidence, f.ranks);
  const std::string gap =
      lost && one ? fmt::format("the file of {} could not be used ({})", f.ranks.label(), lost->note)
                  : fmt::format("{} {} no record in what was given", f.ranks.label(8), one ? "has" : "have");
  f.summary = fmt::format("{}, and {} for {} in {}", gap, waits(f.victims.label(8)), one ? "it" : "them", call);
  f.explanation = fmt::format(
      "Seen before anything was run: calls of the recorded ranks need {}, and without {} program{} none of them can "
      "end.\n",
      one ? "it" : "them", one ? "its" : "their", one ? "" : "s");
  f.evidence.push_back(
      {evidence.path(record.input), std::nullopt, fmt::format("rank {}: {}", record.rank->value, call)});
  cite_empty_files(evidence, f);
  return f;
}

}  // namespace

std::vector<Finding> find_conflicts(const Evidence& evidence) {
  std::vector<Finding> findings;
  for (auto* find : {duplicates, worlds, out_of_range}) {
    if (auto finding = find(evidence)) findings.push_back(std::move(*finding));
  }
  return findings;
}

std::vector<Finding> find_gaps(const Evidence& evidence) {
  const RankSet gaps = ranks_without_record(evidence.trace);
  if (gaps.empty() || evidence.trace.ranks.empty()) return {};
  Needs needs(evidence.trace, gaps);
  for (const RankRecord& record : evidence.trace.ranks) needs.add(record);
  std::vector<Finding> findings;
  if (needs.first != nullptr) findings.push_back(needed_gap(evidence, needs));
  if (const RankSet rest = gaps.without(needs.needed); !rest.empty()) {
    Finding f = missing(rest);
    f.severity = Severity::warning;
    f.summary = fmt::format("{} {} no record in what was given; no call that is run needs {}", rest.label(8),
                            rest.size() == 1 ? "has" : "have", rest.size() == 1 ? "it" : "them");
    f.explanation = "The others were run without.\n";
    findings.push_back(std::move(f));
  }
  return findings;
}

}  // namespace ddx::analyzers
