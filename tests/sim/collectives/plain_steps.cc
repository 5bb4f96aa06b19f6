#include "tests/sim/collectives/plain_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "sim/network/fair_share.h"

namespace ddx::testing {

using namespace sim;  // NOLINT(google-build-using-namespace): all of it

namespace {

struct PlainMessage {
  std::uint32_t from, to, to_step;
  double left;  // bytes
  std::uint64_t cap;
  double latency;
  std::vector<LinkUse> uses;
  double end = 0;
};

struct PlainAgent {
  std::uint32_t step = 0;
  bool awake = false;
  std::uint32_t sends_left = 0;
  std::uint32_t receives = 0;                   // of this step
  std::map<std::uint32_t, std::uint32_t> came;  // step -> messages
  std::vector<PlainMessage> awaiting;
};

class PlainSteps {
 public:
  PlainSteps(const Schedule& schedule, std::optional<SwitchPlace> switches, std::span<const Picos> arrivals,
             const Network& network)
      : schedule_(schedule), switches_(switches), arrivals_(arrivals), network_(network), agents_(schedule.agents()) {
    for (const Picos arrival : arrivals) ends_.push_back(static_cast<double>(arrival));
  }

  std::vector<double> run() {
    for (std::uint32_t id = 0; id < agents_.size(); ++id) {
      const std::uint32_t member = schedule_.member_of(id);
      wakes_.emplace(member < arrivals_.size() ? static_cast<double>(arrivals_[member]) : 0, id);
    }
    while (!wakes_.empty() || !flows_.empty() || !landings_.empty()) next_event();
    return ends_;
  }

 private:
  void next_event() {
    std::vector<FlowDemand> demands;
    for (const PlainMessage& flow : flows_) demands.push_back({flow.uses, flow.cap});
    const auto rates = fair_rates(network_.capacities(), demands);
    double next = std::numeric_limits<double>::infinity();
    for (std::size_t at = 0; at < flows_.size(); ++at) {
      // In whole picoseconds, as the clock goes; where links are shared, errors of one grow from message to message.
      flows_[at].end = now_ + std::round(flows_[at].left / bytes_per_second(rates[at]) * 1e12);
      next = std::min(next, flows_[at].end);
    }
    if (!wakes_.empty()) next = std::min(next, wakes_.begin()->first);
    if (!landings_.empty()) next = std::min(next, landings_.begin()->first);
    for (std::size_t at = 0; at < flows_.size(); ++at)
      flows_[at].left -= bytes_per_second(rates[at]) * (next - now_) * 1e-12;
    now_ = next;
    depart_what_is_done();
    while (!landings_.empty() && landings_.begin()->first <= now_) {
      const auto [to, step] = landings_.begin()->second;
      landings_.erase(landings_.begin());
      ++agents_[to].came[step];
      go_on(to);
    }
    while (!wakes_.empty() && wakes_.begin()->first <= now_) {
      const std::uint32_t id = wakes_.begin()->second;
      wakes_.erase(wakes_.begin());
      agents_[id].awake = true;
      enter(id);
    }
  }

  void depart_what_is_done() {
    std::vector<PlainMessage> done;
    const auto rest = std::stable_partition(flows_.begin(), flows_.end(),
                                            [this](const PlainMessage& flow) { return flow.end > now_; });
    done.assign(rest, flows_.end());
    flows_.erase(rest, flows_.end());
    for (const PlainMessage& message : done) {
      landings_.emplace(now_ + message.latency, std::pair(message.to, message.to_step));
      --agents_[message.from].sends_left;
      go_on(message.from);
    }
  }

  void go_on(std::uint32_t id) {
    PlainAgent& agent = agents_[id];
    if (!agent.awake || agent.step >= schedule_.steps(id)) return;
    if (agent.sends_left > 0 || agent.came[agent.step] < agent.receives) return;
    ++agent.step;
    enter(id);
  }

  void enter(std::uint32_t id) {
    PlainAgent& agent = agents_[id];
    const std::uint32_t member = schedule_.member_of(id);
    if (agent.step >= schedule_.steps(id)) {
      if (member < ends_.size()) ends_[member] = std::max(ends_[member], now_);
      return;
    }
    Step step;
    schedule_.step(id, agent.step, step);
    agent.receives = step.receives;
    agent.sends_left = static_cast<std::uint32_t>(step.sends.size());
    for (const Send& send : step.sends) {
      PlainAgent& receiver = agents_[send.to];
      PlainMessage message = message_of(id, send);
      if (send.awaits_receiver && !(receiver.awake && receiver.step == send.to_step)) {
        receiver.awaiting.push_back(std::move(message));
      } else {
        flows_.push_back(std::move(message));
      }
    }
    std::erase_if(agent.awaiting, [&](const PlainMessage& message) {
      if (message.to_step != agent.step) return false;
      flows_.push_back(message);
      return true;
    });
    go_on(id);
  }

  PlainMessage message_of(std::uint32_t from, const Send& send) const {
    const std::uint32_t sender = schedule_.member_of(from), receiver = schedule_.member_of(send.to);
    const bool from_switch = sender >= arrivals_.size(), to_switch = receiver >= arrivals_.size();
    const Path path = from_switch ? network_.from_switch(receiver, *switches_)
                      : to_switch ? network_.to_switch(sender, *switches_)
                                  : network_.path(sender, receiver);
    PlainMessage message{
        from, send.to, send.to_step, static_cast<double>(send.bytes), kNoCap, static_cast<double>(path.latency), {}, 0};
    std::uint64_t narrowest = kMostRate;
    for (const std::uint32_t link : path.all()) {
      message.uses.push_back({link, 1});
      narrowest = std::min(narrowest, network_.capacities()[link]);
    }
    message.cap = narrowest;
    if (network_.flat() && send.bytes < send.slot_bytes)
      message.cap = static_cast<std::uint64_t>(static_cast<double>(narrowest) * static_cast<double>(send.bytes) /
                                               static_cast<double>(send.slot_bytes));
    return message;
  }

  const Schedule& schedule_;
  std::optional<SwitchPlace> switches_;
  std::span<const Picos> arrivals_;
  const Network& network_;
  double now_ = 0;
  std::vector<PlainAgent> agents_;
  std::vector<PlainMessage> flows_;
  std::multimap<double, std::pair<std::uint32_t, std::uint32_t>> landings_;  // time -> agent, step
  std::multimap<double, std::uint32_t> wakes_;
  std::vector<double> ends_;
};

}  // namespace

std::vector<double> plain_steps(const Schedule& schedule, std::optional<SwitchPlace> switches,
                                std::span<const Picos> arrivals, const Network& network) {
  return PlainSteps(schedule, switches, arrivals, network).run();
}

}  // namespace ddx::testing
