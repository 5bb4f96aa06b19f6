// What of a trace can be replayed, and the arrays that a replay needs.
#include <fmt/format.h>

#include <algorithm>

#include "sim/replay/replay_engine.h"

namespace ddx::sim {
ReplayEngine::ReplayEngine(const Trace& trace, const ReplayOptions& options)
    : trace_(trace), options_(options), classes_(trace), random_(options.visit_seed) {
  set_up();
}

void ReplayEngine::set_up() {
  if (!check_records() || !check_positions() || !check_lengths() || !unroll_programs() || !check_slots()) return;
  if (!fold_ranks() || !check_length()) return;
  lay_out_ranks();
  set_up_steps();
}

bool ReplayEngine::check_records() {
  std::vector<std::int32_t> claimed;
  for (const RankRecord& record : trace_.ranks) {
    if (!record.rank) return refuse("a record does not say of which rank it is");
    claimed.push_back(record.rank->value);
    // Resources are numbered by rank.
    if (timed() && (record.rank->value < 0 || record.rank->value >= std::int64_t{kMaxRanks})) {
      return refuse(fmt::format("rank {} is on no network: expected 0 to {}", record.rank->value, kMaxRanks - 1));
    }
    if (record.snapshot && !record.whole_program) {
      return refuse(fmt::format("rank {} has a recorder's buffer, not its whole program", record.rank->value));
    }
  }
  std::sort(claimed.begin(), claimed.end());
  const auto twice = std::adjacent_find(claimed.begin(), claimed.end());
  if (twice != claimed.end()) return refuse(fmt::format("rank {} has two records", *twice));
  return true;
}

// A communicator's members must each be one rank, or its calls could not be counted.
bool ReplayEngine::check_positions() {
  std::vector<std::uint64_t> held;
  for (const RankRecord& record : trace_.ranks) {
    if (record.comm_rank.size() != record.comms.size()) return refuse("a record does not say its positions");
    std::vector<CommId> comms = record.comms;
    std::sort(comms.begin(), comms.end());
    if (std::adjacent_find(comms.begin(), comms.end()) != comms.end()) {
      return refuse(fmt::format("rank {} names one communicator by two slots", record.rank->value));
    }
    for (std::size_t slot = 0; slot < record.comms.size(); ++slot) {
      if (record.comm_rank[slot] == RankRecord::kNoPosition) continue;
      held.push_back(std::uint64_t{record.comms[slot].value} << 32 | record.comm_rank[slot]);
    }
  }
  std::sort(held.begin(), held.end());
  const auto twice = std::adjacent_find(held.begin(), held.end());
  if (twice == held.end()) return true;
  return refuse(fmt::format("two ranks hold position {} of {}", *twice & 0xffffffff, group_name(CommId(*twice >> 32))));
}

// Times of a run in which something takes an unknown time are nobody's.
bool ReplayEngine::check_lengths() {
  if (!timed()) return true;
  std::uint64_t unknown = 0;
  std::string first;
  for (const RankRecord& record : trace_.ranks) {
    const Program& rows = trace_.program(record);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const Signature& signature = trace_.signature(rows.signature(row));
      if (signature.kind != OpKind::compute || signature.compute_time) continue;
      if (unknown++ > 0) continue;
      const std::string_view name = trace_.text(signature.name);
      first = fmt::format("rank {}: computation {}", record.rank->value,
                          name.empty() ? fmt::format("(operation {})", row) : fmt::format("'{}'", name));
    }
  }
  if (unknown == 0) return true;
  const std::string others = unknown == 1 ? "" : fmt::format(" (and of {} more)", format_count(unknown - 1));
  return refuse(fmt::format("{}: how long it takes{} is not known: no time can be predicted", first, others));
}

bool ReplayEngine::refuse_length() {
  return refuse(fmt::format("more than {} operations, too many to run", format_count(options_.max_ops)));
}

bool ReplayEngine::unroll_programs() {
  std::vector<std::uint32_t> used;
  for (const RankRecord& record : trace_.ranks) used.push_back(record.program.value);
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  // All of them before the first is run out: each is at least one class's.
  std::uint64_t left = options_.max_ops;
  for (const std::uint32_t id : used) {
    const std::uint64_t length = length_of(trace_.programs[id]);
    if (length > left) return refuse_length();
    left -= length;
  }
  unrolled_.resize(trace_.programs.size());
  for (const std::uint32_t id : used) {
    std::string why;
    unrolled_[id] = unroll(trace_, trace_.programs[id], why);
    if (why.empty()) continue;
    const auto first = std::find_if(trace_.ranks.begin(), trace_.ranks.end(),
                                    [id](const RankRecord& record) { return record.program.value == id; });
    return refuse(fmt::format("rank {}: {}", first->rank->value, why));
  }
  return true;
}

bool ReplayEngine::check_slots() {
  for (const RankRecord& record : trace_.ranks) {
    const UnrolledProgram& program = unrolled_[record.program.value];
    if (program.comm_slots > record.comms.size() || program.peer_slots > record.peers.size()) {
      return refuse(fmt::format("rank {} binds fewer slots than its program uses", record.rank->value));
    }
  }
  return true;
}

bool ReplayEngine::fold_ranks() {
  FoldOptions fold_options;
  // In mid-run ranks that are alike come apart.
  fold_options.merge = options_.fold && !options_.stop_after;
  if (timed()) {
    const CostModel& costs = *options_.timing.costs;
    fold_options.merge = fold_options.merge && !costs.by_steps() && options_.timing.noise_ppm == 0;
    fold_options.labels = options_.timing.compute_factors;
    fold_options.comm_label = [&costs](const Communicator& communicator) { return costs.mark(communicator); };
    for (const RankRecord& record : trace_.ranks) {
      const auto resources = costs.resources(*record.rank);
      fold_options.resource_kinds = static_cast<std::uint32_t>(resources.size());
      fold_options.resources.insert(fold_options.resources.end(), resources.begin(), resources.end());
    }
    fold_options.channel_label = [&costs](RankId from, RankId to) { return costs.mark(from, to); };
  }
  folding_ = fold(trace_, unrolled_, fold_options, refusal_);
  return refusal_.empty();
}

bool ReplayEngine::check_length() {
  std::uint64_t left = options_.max_ops;
  for (const std::uint32_t record : folding_.representative) {
    const std::uint64_t length = unrolled_[trace_.ranks[record].program.value].ops.size();
    if (length > left) return refuse_length();
    left -= length;
  }
  return true;
}

void ReplayEngine::lay_out_ranks() {
  std::uint64_t ops = 0, stream_count = 0;
  ranks_.resize(folding_.representative.size());
  for (std::uint32_t id = 0; id < ranks_.size(); ++id) {
    Rank& rank = ranks_[id];
    rank.program = record(id).program.value;
    rank.base = ops;
    rank.streams = stream_count;
    rank.slots = folding_.slot_base[id];
    rank.endpoints = folding_.endpoint_base[id];
    rank.stream_ordered = !options_.blocking && (options_.stream_ordered || record(id).stream_ordered);
    ops += unrolled_[rank.program].ops.size();
    stream_count += unrolled_[rank.program].streams;
  }
  states_.assign(ops, static_cast<std::uint8_t>(OpState::planned));
  if (timed()) times_.resize(ops);
  streams_.resize(stream_count);
  for (const Rank& rank : ranks_) {
    const UnrolledProgram& program = unrolled_[rank.program];
    for (std::size_t s = 0; s < program.streams; ++s) streams_[rank.streams + s].head = program.first_batch[s];
  }
  collectives_done_.assign(folding_.comm.size(), 0);
  comm_until_.assign(timed() ? folding_.comm.size() : 0, 0);
  channels_.resize(folding_.channels);
  comms_.resize(folding_.comm_size.size());
  for (std::size_t i = 0; i < comms_.size(); ++i) comms_[i].size = folding_.comm_size[i];
}

}  // namespace ddx::sim
