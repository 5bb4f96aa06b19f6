// Every call as messages on the links of the network, side by side with all others. Every rank is a class of its own
// here, and the programs are known to run to their end (replay()), so that a member may be done before others come.
#include <fmt/format.h>

#include <algorithm>

#include "sim/replay/replay_engine.h"

namespace ddx::sim {

void ReplayEngine::set_up_steps() {
  if (!timed() || !options_.timing.costs->by_steps()) return;
  std::uint32_t ranks = 0;
  for (const RankRecord& record : trace_.ranks) {
    ranks = std::max(ranks, static_cast<std::uint32_t>(record.rank->value) + 1);
  }
  const auto network = options_.timing.costs->network(ranks);
  if (!network) return;
  step_ranks_ = network->ranks();
  steps_ = std::make_unique<StepNetwork>(*network);
}

// nullptr: there is no price.
ReplayEngine::StepCall* ReplayEngine::begin_steps(const std::optional<StepWork>& work,
                                                  std::optional<std::uint64_t> alike, OpRef call, std::uint32_t& id) {
  const bool placed =
      work && !work->places.empty() &&
      std::all_of(work->places.begin(), work->places.end(), [&](std::uint32_t place) { return place < step_ranks_; });
  if (!placed) {
    refuse(fmt::format(
        "{} {} of rank {} cannot be simulated step by step: its count, type or members are not known, "
        "or {} has no algorithm for it",
        name_of(op_of(call).kind), op_of(call).seq, record(call.rank).rank->value, options_.timing.costs->name()));
    return nullptr;
  }
  id = steps_->begin(*work->algorithm, work->work, work->places, alike, work->pace);
  if (step_calls_.size() <= id) step_calls_.resize(id + std::size_t{1});
  step_calls_[id] = {};
  step_calls_[id].left = static_cast<std::uint32_t>(work->places.size());
  return &step_calls_[id];
}

// The first that comes to a call begins it. False: there is no price.
bool ReplayEngine::begin_call_by_steps(OpRef call, std::uint32_t comm, Instance& instance) {
  const CommId id = folding_.comm_representative[comm];
  const std::uint32_t size = comms_[comm].size;
  const auto unlike = unlike_work_.find({id.value, op_of(call).seq});
  const auto named = static_cast<std::uint32_t>(root_of(call).value_or(0));
  const std::uint32_t root = named < size ? named : 0;
  std::optional<std::uint64_t> alike = std::uint64_t{comm} << 32 | signature_id(call).value;
  // A signature names its root by a slot, which each rank fills by itself.
  if (unlike != unlike_work_.end() || root != 0) alike.reset();
  const auto work = unlike != unlike_work_.end() ? unlike->second : work_of(signature_of(call), size);
  auto steps = work ? options_.timing.costs->steps(trace_.communicator(id), *work) : std::nullopt;
  // Algorithms have their root in front.
  if (steps && root < steps->places.size()) {
    std::rotate(steps->places.begin(), steps->places.begin() + root, steps->places.end());
  }
  StepCall* made = begin_steps(steps, alike, call, instance.step_call);
  if (made == nullptr) return false;
  made->at = comm;
  made->number = op_of(call).seq;
  made->root = root;
  made->calls.resize(size);
  return true;
}

void ReplayEngine::arrive_by_steps(OpRef call, std::uint32_t comm, Instance& instance) {
  if (instance.step_call == kNoOp && !begin_call_by_steps(call, comm, instance)) return;
  StepCall& step_call = step_calls_[instance.step_call];
  const auto size = static_cast<std::uint32_t>(step_call.calls.size());
  const std::uint32_t position = position_of(call);
  const std::uint32_t member =
      position >= step_call.root ? position - step_call.root : position + (size - step_call.root);
  step_call.calls.at(member) = call;
  steps_->arrive(instance.step_call, member, start_of(call));
}

// Both are there.
void ReplayEngine::send_by_steps(const Met& met) {
  const Pair& pair = channels_[met.channel].pairs.at(met.order);
  const Picos both = std::max(start_of(pair.send), start_of(pair.recv));
  const RankRecord& sender = record(pair.send.rank);
  const RankId to = partner_of(sender, pair.send);
  if (*sender.rank == to) return complete_pair(met, both, both);
  const auto bytes = bytes_of(signature_of(pair.send));
  const auto steps = bytes ? options_.timing.costs->steps(*sender.rank, to, *bytes) : std::nullopt;
  std::uint32_t id = kNoOp;
  StepCall* made = begin_steps(steps, std::nullopt, pair.send, id);
  if (made == nullptr) return;
  made->pair = true;
  made->at = met.channel;
  made->number = met.order;
  for (std::uint32_t member = 0; member < 2; ++member) steps_->arrive(id, member, both);
}

bool ReplayEngine::advance_steps() {
  if (!refusal_.empty()) return false;
  if (!steps_->advance(step_ends_)) return false;
  for (const StepNetwork::End& end : step_ends_) end_by_steps(step_calls_[end.call], end);
  return true;
}

void ReplayEngine::end_by_steps(StepCall& step_call, const StepNetwork::End& end) {
  const bool last = --step_call.left == 0;
  if (step_call.pair) {
    // Both are over with the message's arrival, as in the closed form.
    if (last) complete_pair({step_call.at, step_call.number}, end.time, end.time);
    return;
  }
  auto& ring = comms_[step_call.at].instances;
  Instance& instance = ring.at(step_call.number - 1);
  const bool all_there = instance.members == comms_[step_call.at].size;
  instance.done = last;
  complete(step_call.calls[end.member], end.time, all_there ? instance.latest : end.time);
  while (ring.size() > 0 && ring.front().done) ring.pop();
}

}  // namespace ddx::sim
