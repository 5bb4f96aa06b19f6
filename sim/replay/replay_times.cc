// When things start and end. What a rank does by itself is timed when it is visited, however far its clock is ahead of
// others': nobody else can change it.
#include <fmt/format.h>

#include <algorithm>

#include "sim/replay/replay_engine.h"

namespace ddx::sim {
namespace {

constexpr std::uint32_t kWhole = 1'000'000;  // parts per million

}  // namespace

// The host came to this op.
void ReplayEngine::note_issue(const Rank& rank, std::uint32_t at) {
  if (!timed()) return;
  Picos& start = times_[rank.base + at].start;
  if (start == kNoTime) start = rank.now;
}

void ReplayEngine::note_start(const Rank& rank, const UnrolledOp& op, std::uint32_t at) {
  Picos& start = times_[rank.base + at].start;
  start = std::max(start, streams_[rank.streams + op.stream].busy_until);
  if (unrolled_[rank.program].crosses_streams && is_collective(op.kind)) {
    start = std::max(start, comm_until_[rank.slots + op.comm_slot]);
  }
}

void ReplayEngine::note_end(Rank& rank, const UnrolledOp& op, std::uint32_t at, Picos end, Picos ready) {
  if (end == kForever) refuse_time();
  OpTimes& times = times_[rank.base + at];
  times.end = end;
  times.ready = ready;
  rank.last_end = std::max(rank.last_end, end);
  Picos& busy = streams_[rank.streams + op.stream].busy_until;
  busy = std::max(busy, end);
  // Only of the parts that the host waits for: others may end before or behind its waking.
  const bool awaited = !op.async && !takes_length(op.kind);
  if (awaited && op.group == rank.group_now && op.group != kNoOp) rank.group_end = std::max(rank.group_end, end);
  if (is_collective(op.kind)) {
    Picos& until = comm_until_[rank.slots + op.comm_slot];
    until = std::max(until, end);
  }
}

void ReplayEngine::wake(Rank& rank) {
  if (!timed()) return;
  switch (rank.wait) {
    case HostWait::none: return;
    case HostWait::op: rank.now = std::max(rank.now, times_[rank.base + rank.waits_for].end); return;
    case HostWait::group:
      rank.now = std::max(rank.now, rank.group_end);
      end_at(rank, rank.pc - 1);  // the group's end, behind which the host stands
      return;
    case HostWait::all: rank.now = std::max(rank.now, rank.last_end); return;
  }
}

Picos ReplayEngine::compute_time(std::uint32_t id, std::uint32_t at) const {
  if (!timed()) return 0;
  const Nanos length = signature_of({id, at}).compute_time.value_or(0);
  if (op_of({id, at}).kind != OpKind::compute) return std::max<Picos>(0, from_nanos(length));
  const auto& factors = options_.timing.compute_factors;
  const std::uint64_t factor = factors.empty() ? kWholeLength : factors[folding_.representative[id]];
  const auto whole = static_cast<std::uint64_t>(std::max<Picos>(0, from_nanos(length)));
  if (factor == kWholeLength && options_.timing.noise_ppm == 0) return static_cast<Picos>(whole);
  Wide time = (Wide{whole} * factor + kWholeLength / 2) / kWholeLength;
  if (const std::uint32_t noise = options_.timing.noise_ppm; noise > 0) {
    const std::int64_t drawn = noise_at(options_.timing.seed, record(id).rank->value, at);
    const std::int64_t millionths = std::max<std::int64_t>(0, kWhole + drawn * noise / kWhole);
    time = std::min(time, Wide{static_cast<std::uint64_t>(kForever)}) * static_cast<std::uint64_t>(millionths) / kWhole;
  }
  return time > Wide{static_cast<std::uint64_t>(kForever)} ? kForever : static_cast<Picos>(time);
}

void ReplayEngine::refuse_price(OpRef call) {
  const bool known =
      is_p2p(op_of(call).kind) ? bytes_of(signature_of(call)).has_value() : work_of(signature_of(call), 1).has_value();
  refuse(
      fmt::format("{} {} of rank {} cannot be priced: {}", name_of(op_of(call).kind), op_of(call).seq,
                  record(call.rank).rank->value,
                  known ? options_.timing.costs->name() + " has no figure for it" : "its count or type is not known"));
}

const Cost& ReplayEngine::cost_at(std::uint64_t key, OpRef call,
                                  std::optional<Cost> (ReplayEngine::*find)(OpRef) const) {
  const auto [at, fresh] = costs_.try_emplace(key);
  if (!fresh) return at->second;
  auto cost = (this->*find)(call);
  if (cost) {
    at->second = std::move(*cost);
  } else {
    refuse_price(call);
  }
  return at->second;
}

std::optional<Cost> ReplayEngine::collective_cost(OpRef call) const {
  const std::uint32_t comm = folding_.comm[slot_row(call)];
  const auto work = work_of(signature_of(call), comms_[comm].size);
  if (!work) return std::nullopt;
  return options_.timing.costs->collective(trace_.communicator(folding_.comm_representative[comm]), *work);
}

std::optional<Cost> ReplayEngine::transfer_cost(OpRef send) const {
  const auto bytes = bytes_of(signature_of(send));
  const RankRecord& sender = record(send.rank);
  if (!bytes) return std::nullopt;
  return options_.timing.costs->transfer(*sender.rank, partner_of(sender, send), *bytes);
}

const Cost& ReplayEngine::cost_of(const Instance& instance) {
  if (instance.unlike) return cost_of_unlike(instance);
  const OpRef call = instance.arrived.front();
  const std::uint64_t key = std::uint64_t{folding_.comm[slot_row(call)]} << 32 | signature_id(call).value;
  return cost_at(key, call, &ReplayEngine::collective_cost);
}

// What all of them together say: a count that one does not know another may, of different ones the largest counts, of
// split lists the rank that sends or receives most. So it does not matter who came first.
std::optional<Work> ReplayEngine::work_of_unlike(const Instance& instance) const {
  const std::uint32_t size = comms_[folding_.comm[slot_row(instance.arrived.front())]].size;
  std::optional<Work> all;
  for (const OpRef call : instance.arrived) {
    const auto work = work_of(signature_of(call), size);
    if (!work) continue;
    if (!all) all = *work;
    all->bytes = std::max(all->bytes, work->bytes);
    all->type = std::max(all->type, work->type);
    all->redop = std::max(all->redop, work->redop);
  }
  if (all && all->kind == OpKind::all_to_all) all->bytes = heaviest_split(instance, all->bytes);
  return all;
}

// Bytes of one rank's input in an even all_to_all that loads every port as these lists load the busiest one; `even`
// where there are none.
std::uint64_t ReplayEngine::heaviest_split(const Instance& instance, std::uint64_t even) const {
  const std::size_t size = comms_[folding_.comm[slot_row(instance.arrived.front())]].size;
  std::vector<Wide> out(size, 0), in(size, 0);
  bool known = false;
  for (const OpRef call : instance.arrived) {
    const Signature& signature = signature_of(call);
    const std::size_t from = position_of(call);
    const auto bytes = element_bytes(signature.type_in);
    if (signature.split_in.size() != size || !bytes || from >= size) continue;
    known = true;
    for (std::size_t to = 0; to < size; ++to) {
      if (to == from) continue;
      const Wide part = Wide{signature.split_in[to]} * *bytes;
      out[from] += part;
      in[to] += part;
    }
  }
  if (!known || size < 2) return even;
  const Wide most = std::max(*std::max_element(out.begin(), out.end()), *std::max_element(in.begin(), in.end()));
  const Wide total = (most * size + size - 2) / (size - 1);
  return static_cast<std::uint64_t>(std::min(total, Wide{UINT64_MAX}));
}

const Cost& ReplayEngine::cost_of_unlike(const Instance& instance) {
  const OpRef call = instance.arrived.front();
  const std::uint32_t comm = folding_.comm[slot_row(call)];
  const auto work = work_of_unlike(instance);
  if (!work) {
    refuse_price(call);
    return unlike_costs_[{}];
  }
  const auto [at, fresh] = unlike_costs_.try_emplace({comm, work->kind, work->bytes, work->type, work->redop});
  if (!fresh) return at->second;
  auto cost = options_.timing.costs->collective(trace_.communicator(folding_.comm_representative[comm]), *work);
  if (cost) {
    at->second = std::move(*cost);
  } else {
    refuse_price(call);
  }
  return at->second;
}

const Cost& ReplayEngine::cost_of(OpRef send) {
  // Channels are numbered apart from communicators.
  const std::uint64_t channel = channel_of(send) + comms_.size();
  return cost_at(channel << 32 | signature_id(send).value, send, &ReplayEngine::transfer_cost);
}

}  // namespace ddx::sim
