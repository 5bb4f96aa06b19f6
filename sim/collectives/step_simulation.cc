#include "sim/collectives/step_simulation.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "sim/engine/time_queue.h"
#include "sim/network/flow_set.h"

namespace ddx::sim {

namespace {

// How many messages have come for steps that an agent is not in yet: a ring of counters over the steps ahead of it.
class EarlyArrivals {
 public:
  // `step` is `current` or later.
  void add(std::uint32_t current, std::uint32_t step) {
    while (step - current >= counts_.size()) grow(current);
    ++counts_[step & (counts_.size() - 1)];
  }
  std::uint32_t take(std::uint32_t step) {
    return counts_.empty() ? 0 : std::exchange(counts_[step & (counts_.size() - 1)], 0U);
  }

 private:
  void grow(std::uint32_t current) {
    std::vector<std::uint32_t> wider(std::max<std::size_t>(4, 2 * counts_.size()));
    for (std::size_t ahead = 0; ahead < counts_.size(); ++ahead) {
      const std::size_t step = current + ahead;
      wider[step & (wider.size() - 1)] = counts_[step & (counts_.size() - 1)];
    }
    counts_.swap(wider);
  }

  std::vector<std::uint32_t> counts_;
};

// As many to a node as the network puts there, if every node has as many; else each is one of its own.
Members members_on(const Network& network, std::span<const std::uint32_t> ranks) {
  const auto count = static_cast<std::uint32_t>(ranks.size());
  if (network.flat()) return flat_members(count);
  const std::uint32_t size = network.ranks_per_domain();
  std::uint32_t first = 0;
  while (first < count && ranks[first] / size == ranks[0] / size) ++first;
  if (first == 0 || count % first != 0) return {count, 1, false};
  for (std::uint32_t at = 0; at < count; ++at) {
    if (ranks[at] / size != ranks[at - at % first] / size) return {count, 1, false};
  }
  return {count, first, false};
}

void check_call(std::span<const Picos> arrivals, const Network& network, std::span<const std::uint32_t> ranks) {
  if (ranks.empty() || arrivals.size() != ranks.size())
    throw Error("steps: expected as many arrivals as ranks, and at least one");
  if (std::any_of(arrivals.begin(), arrivals.end(), [](Picos time) { return time < 0; }))
    throw Error("steps: expected arrivals at 0 or later");
  std::vector<bool> taken(network.ranks());
  for (const std::uint32_t rank : ranks) {
    if (rank >= taken.size())
      throw Error("steps: rank " + std::to_string(rank) + " of a network of " + std::to_string(taken.size()) +
                  " ranks");
    if (taken[rank]) throw Error("steps: rank " + std::to_string(rank) + " stands for two members");
    taken[rank] = true;
  }
}

// A message that nobody shares a link with has its end known when it begins, and costs two events and no search. Only
// where more is asked of a link than it has do the messages on it become flows of a FlowSet. What begins at one time is
// looked at together, so that the order of events of one time decides nothing.
class StepSimulation {
 public:
  StepSimulation(const Schedule& schedule, std::optional<SwitchPlace> switches, const Network& network,
                 std::span<const std::uint32_t> ranks)
      : schedule_(schedule),
        switches_(switches),
        network_(network),
        ranks_(ranks),
        links_(network.capacities().size()),
        shared_({network.capacities().begin(), network.capacities().end()}) {
    for (std::size_t link = 0; link < links_.size(); ++link) links_[link].capacity = network.capacities()[link];
  }

  std::vector<Picos> run(std::span<const Picos> arrivals) {
    ends_.assign(arrivals.begin(), arrivals.end());
    agents_.resize(schedule_.agents());
    for (std::uint32_t id = 0; id < agents_.size(); ++id) {
      Agent& agent = agents_[id];
      agent.member = schedule_.member_of(id);
      agent.steps = schedule_.steps(id);
      queue_.push(is_switch(agent.member) ? 0 : arrivals[agent.member], {id, EventKind::wake});
    }
    while (!queue_.empty() || !shared_.empty()) next_instant();
    for (const Agent& agent : agents_) DDX_CHECK(agent.step == agent.steps);
    return std::move(ends_);
  }

 private:
  struct Agent {
    std::uint32_t step = 0;
    std::uint32_t steps = 0;
    std::uint32_t receives_left = 0;
    std::uint32_t sends_left = 0;
    std::uint32_t member = 0;
    bool awake = false;
    EarlyArrivals early;
    std::vector<std::uint32_t> awaiting;  // messages that begin when it gets to their step
  };
  struct Message {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint32_t to_step = 0;
    bool alone = false;  // under way, with its end known
    std::uint64_t bytes = 0;
    std::uint64_t cap = 0;  // bytes a second
    Picos begun = 0;
    Picos duration = 0;  // when nothing is shared
    Path path;
  };
  struct Link {
    std::uint64_t capacity = 0;
    std::uint64_t load = 0;   // the caps of the messages under way on it
    std::uint32_t alone = 0;  // how many of these are not in shared_
  };
  enum class EventKind : std::uint32_t { departure, arrival, wake };
  struct Event {
    std::uint32_t id;  // of a message, or of an agent that wakes
    EventKind kind;
  };

  bool is_switch(std::uint32_t member) const { return member >= ranks_.size(); }

  void next_instant() {
    bool events_due = !queue_.empty();
    if (!shared_.empty()) {
      const Picos finish = shared_.next_finish().value_or(kForever);
      const Picos next = queue_.empty() ? kForever : queue_.next_time();
      now_ = std::min(finish, next);
      if (now_ == kForever) throw too_long();
      events_due = next == now_;
      if (finish == now_) end_shared();
    }
    if (events_due) {
      now_ = queue_.take(due_);
      for (const Event event : due_) handle(event);
    }
    if (!beginning_.empty()) begin_messages();
  }

  void handle(Event event) {
    switch (event.kind) {
      case EventKind::departure:
        // Not of one that has been slowed down since: its end is in shared_.
        if (!std::exchange(messages_[event.id].alone, false)) break;
        for (const std::uint32_t link : messages_[event.id].path.all()) --links_[link].alone;
        depart(event.id);
        break;
      case EventKind::arrival: arrive(event.id); break;
      case EventKind::wake:
        agents_[event.id].awake = true;
        enter_step(event.id);
        break;
    }
  }

  void depart(std::uint32_t id) {
    const Message& message = messages_[id];
    for (const std::uint32_t link : message.path.all()) links_[link].load -= message.cap;
    push_after(message.path.latency, {id, EventKind::arrival});
    Agent& sender = agents_[message.from];
    if (--sender.sends_left == 0 && sender.receives_left == 0) leave_step(message.from);
  }

  void arrive(std::uint32_t id) {
    const std::uint32_t to = messages_[id].to, step = messages_[id].to_step;
    free_messages_.push_back(id);
    Agent& receiver = agents_[to];
    DDX_CHECK(step >= receiver.step);
    if (!receiver.awake || step != receiver.step) {
      receiver.early.add(receiver.step, step);
    } else if (--receiver.receives_left == 0 && receiver.sends_left == 0) {
      leave_step(to);
    }
  }

  void leave_step(std::uint32_t id) {
    ++agents_[id].step;
    enter_step(id);
  }

  void enter_step(std::uint32_t id) {
    Agent& agent = agents_[id];
    for (; agent.step < agent.steps; ++agent.step) {
      step_.sends.clear();
      step_.receives = 0;
      schedule_.step(id, agent.step, step_);
      const std::uint32_t early = agent.early.take(agent.step);
      DDX_CHECK(early <= step_.receives);
      agent.receives_left = step_.receives - early;
      agent.sends_left = static_cast<std::uint32_t>(step_.sends.size());
      for (const Send& send : step_.sends) post(id, send);
      if (!agent.awaiting.empty()) admit_awaiting(agent);
      if (agent.receives_left > 0 || agent.sends_left > 0) return;
    }
    if (!is_switch(agent.member)) ends_[agent.member] = std::max(ends_[agent.member], now_);
  }

  void post(std::uint32_t from, const Send& send) {
    std::uint32_t id = 0;
    if (free_messages_.empty()) {
      id = static_cast<std::uint32_t>(messages_.size());
      messages_.emplace_back();
    } else {
      id = free_messages_.back();
      free_messages_.pop_back();
    }
    Message& message = messages_[id];
    message.from = from;
    message.to = send.to;
    message.to_step = send.to_step;
    message.bytes = send.bytes;
    message.path = path_of(agents_[from].member, agents_[send.to].member);
    // The parts of a port are those of a flat network; on any other, messages take what there is.
    set_speed(message, network_.flat() ? send.slot_bytes : send.bytes);
    Agent& receiver = agents_[send.to];
    if (send.awaits_receiver && !(receiver.awake && receiver.step == send.to_step)) {
      receiver.awaiting.push_back(id);
    } else {
      beginning_.push_back(id);
    }
  }

  Path path_of(std::uint32_t from, std::uint32_t to) const {
    if (is_switch(from)) return network_.from_switch(ranks_[to], *switches_);
    if (is_switch(to)) return network_.to_switch(ranks_[from], *switches_);
    return network_.path(ranks_[from], ranks_[to]);
  }

  // The division of 128 bits is most of what a message costs, and most are as long as the one before.
  void set_speed(Message& message, std::uint64_t slot_bytes) {
    std::uint64_t capacity = std::numeric_limits<std::uint64_t>::max();
    for (const std::uint32_t link : message.path.all()) capacity = std::min(capacity, links_[link].capacity);
    if (speed_.bytes != message.bytes || speed_.slot_bytes != slot_bytes || speed_.capacity != capacity) {
      if (slot_bytes > kMostBytes)
        throw Error("a message of " + std::to_string(slot_bytes) + " bytes; expected at most " +
                    std::to_string(kMostBytes));
      speed_ = {message.bytes, slot_bytes, capacity, capacity, transfer_time(slot_bytes, capacity)};
      if (message.bytes < slot_bytes)
        speed_.cap =
            std::max<std::uint64_t>(1, static_cast<std::uint64_t>(Wide{capacity} * message.bytes / slot_bytes));
    }
    message.cap = speed_.cap;
    message.duration = speed_.duration;
  }

  void admit_awaiting(Agent& agent) {
    const auto late = std::partition(agent.awaiting.begin(), agent.awaiting.end(),
                                     [&](std::uint32_t id) { return messages_[id].to_step != agent.step; });
    beginning_.insert(beginning_.end(), late, agent.awaiting.end());
    agent.awaiting.erase(late, agent.awaiting.end());
  }

  void begin_messages() {
    for (const std::uint32_t id : beginning_) {
      if (messages_[id].bytes == 0) continue;
      for (const std::uint32_t link : messages_[id].path.all()) links_[link].load += messages_[id].cap;
    }
    bool others_slow_down = false;
    for (const std::uint32_t id : beginning_) {
      Message& message = messages_[id];
      message.begun = now_;
      message.alone = true;
      if (message.bytes == 0) {
        message.path.count = 0;
        queue_.push(now_, {id, EventKind::departure});
        continue;
      }
      for (const std::uint32_t number : message.path.all()) {
        const Link& link = links_[number];
        if (link.load <= link.capacity) continue;
        message.alone = false;
        others_slow_down |= link.alone > 0;
      }
      if (!message.alone) share(id);
    }
    if (others_slow_down) share_slowed();
    for (const std::uint32_t id : beginning_) {
      if (messages_[id].bytes == 0 || !messages_[id].alone) continue;
      for (const std::uint32_t link : messages_[id].path.all()) ++links_[link].alone;
      push_after(messages_[id].duration, {id, EventKind::departure});
    }
    beginning_.clear();
  }

  void share(std::uint32_t id) {
    const Message& message = messages_[id];
    uses_.clear();
    for (const std::uint32_t link : message.path.all()) uses_.push_back({link, 1});
    const Amount all = amount_of(message.bytes);
    const Amount gone = moved(rate_of(message.cap), now_ - message.begun);
    const FlowSet::FlowId flow = shared_.add(now_, all - std::min(all, gone), uses_, message.cap);
    if (flow >= message_of_flow_.size()) message_of_flow_.resize(flow + 1);
    message_of_flow_[flow] = id;
  }

  // Of those that had their links to themselves until now.
  void share_slowed() {
    for (std::uint32_t id = 0; id < messages_.size(); ++id) {
      Message& message = messages_[id];
      if (!message.alone || message.path.count == 0) continue;
      const auto links = message.path.all();
      if (std::none_of(links.begin(), links.end(),
                       [this](std::uint32_t link) { return links_[link].load > links_[link].capacity; }))
        continue;
      message.alone = false;
      for (const std::uint32_t link : links) --links_[link].alone;
      share(id);
    }
  }

  void end_shared() {
    shared_.take_finished(now_, finished_);
    for (const FlowSet::FlowId flow : finished_) depart(message_of_flow_[flow]);
  }

  void push_after(Picos delay, Event event) {
    if (delay >= kForever - now_) throw too_long();
    queue_.push(now_ + delay, event);
  }
  static Error too_long() { return Error("the simulated time passes 106 days, which is as long as the clock counts"); }

  struct Speed {
    std::uint64_t bytes = 0;
    std::uint64_t slot_bytes = 0;
    std::uint64_t capacity = 0;
    std::uint64_t cap = 0;
    Picos duration = 0;
  };

  const Schedule& schedule_;
  std::optional<SwitchPlace> switches_;
  const Network& network_;
  std::span<const std::uint32_t> ranks_;
  Picos now_ = 0;
  TimeQueue<Event> queue_;
  std::vector<Agent> agents_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_messages_;
  std::vector<std::uint32_t> beginning_;  // at now_
  std::vector<Link> links_;
  FlowSet shared_;
  std::vector<std::uint32_t> message_of_flow_;
  std::vector<Picos> ends_;
  Speed speed_;  // of the message before
  // Kept for their memory.
  std::vector<Event> due_;
  std::vector<FlowSet::FlowId> finished_;
  std::vector<LinkUse> uses_;
  Step step_;
};

}  // namespace

std::vector<Picos> simulate_steps(const Algorithm& algorithm, const Work& work, std::span<const Picos> arrivals,
                                  const Network& network, std::span<const std::uint32_t> ranks) {
  check_call(arrivals, network, ranks);
  const Members members = members_on(network, ranks);
  if (!algorithm.runs(work.kind, members))
    throw Error(std::string(algorithm.name) + ": no " + std::string(name_of(work.kind)) + " of " +
                std::to_string(ranks.size()) + " ranks");
  const std::unique_ptr<Schedule> schedule = algorithm.schedule(work, members);
  return StepSimulation(*schedule, algorithm.reduces_in, network, ranks).run(arrivals);
}

std::vector<Picos> simulate_steps(const Algorithm& algorithm, const Work& work, std::span<const Picos> arrivals,
                                  const Network& network) {
  std::vector<std::uint32_t> ranks(arrivals.size());
  std::iota(ranks.begin(), ranks.end(), 0U);
  return simulate_steps(algorithm, work, arrivals, network, ranks);
}

}  // namespace ddx::sim
