#include "sim/collectives/step_network.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "sim/collectives/channels.h"
#include "sim/collectives/port_bound.h"
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

void check_ranks(const Network& network, std::span<const std::uint32_t> ranks) {
  if (ranks.empty()) throw Error("steps: expected at least one rank");
  std::vector<bool> taken(network.ranks());
  for (const std::uint32_t rank : ranks) {
    if (rank >= taken.size())
      throw Error("steps: rank " + std::to_string(rank) + " of a network of " + std::to_string(taken.size()) +
                  " ranks");
    if (taken[rank]) throw Error("steps: rank " + std::to_string(rank) + " stands for two members");
    taken[rank] = true;
  }
}

std::uint64_t scaled(std::uint64_t value, std::uint64_t parts) {
  if (parts == Pace::kWhole) return value;
  const Wide all = (Wide{value} * parts + Pace::kWhole / 2) / Pace::kWhole;
  return static_cast<std::uint64_t>(std::min(all, Wide{std::numeric_limits<std::uint64_t>::max()}));
}

}  // namespace

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

// A message that nobody shares a link with has its end known when it begins, and costs two events and no search. Only
// where more is asked of a link than it has do the messages on it become flows of a FlowSet. What begins at one time is
// looked at together, so that the order of events of one time decides nothing.
class StepNetwork::State {
 public:
  explicit State(const Network& network)
      : network_(network),
        links_(network.capacities().size()),
        shared_({network.capacities().begin(), network.capacities().end()}) {
    for (std::size_t link = 0; link < links_.size(); ++link) links_[link].capacity = network.capacities()[link];
  }

  CallId begin(const Algorithm& algorithm, const Work& work, std::vector<std::uint32_t> ranks,
               std::optional<std::uint64_t> alike, const Pace& pace);
  void arrive(CallId id, std::uint32_t member, Picos time);
  bool advance(std::vector<End>& ends);

 private:
  struct Agent {
    std::uint32_t step = 0;
    std::uint32_t steps = 0;
    std::uint32_t receives_left = 0;
    std::uint32_t sends_left = 0;
    std::uint32_t member = 0;
    CallId call = 0;
    bool awake = false;
    EarlyArrivals early;
    std::vector<std::uint32_t> awaiting;  // messages that begin when it gets to their step
  };
  struct Call {
    std::unique_ptr<Schedule> schedule;
    Work work;
    std::string_view algorithm;
    Pace pace;
    std::optional<SwitchPlace> switches;
    std::vector<std::uint32_t> ranks;
    std::vector<std::uint32_t> messages;  // from and to each member
    std::optional<std::uint64_t> alike;
    std::uint32_t base = 0;  // of its agents
    std::uint32_t agents = 0;
    std::uint32_t agents_left = 0;
    std::vector<std::uint32_t> left;  // agents that are not done, by member
    // Agents by member, then the switches' as one group more: those of group g from groups[g] to groups[g + 1].
    std::vector<std::uint32_t> by_member, groups;
    std::vector<Picos> ends;  // by member
    std::uint32_t arrived = 0;
    Picos first = 0;       // arrival that was told
    Picos earliest = 0;    // arrival
    bool together = true;  // all arrivals are at one time
    bool alone = true;     // no other call was under way at any time of it
    bool stirred = false;  // something of it has happened
  };
  // A call that has the network for itself, and of which it is known when its members are done.
  struct Lone {
    CallId call = 0;
    std::vector<End> ends;  // by time
    std::size_t told = 0;   // the first so many
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

  std::uint32_t place_for(std::uint32_t agents);
  void lay_out_agents(Call& call, CallId id);
  void wake(const Call& call, std::uint32_t group, Picos time);
  void finish_agent(const Agent& agent);
  void check(const Call& call) const;
  void close(CallId id);
  bool may_go_alone() const;
  void go_alone();
  void take_alone(std::vector<End>& ends);
  void stop_going_alone();

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
        calls_[agents_[event.id].call].stirred = true;
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
      const Call& call = calls_[agent.call];
      call.schedule->step(id - call.base, agent.step, step_);
      const std::uint32_t early = agent.early.take(agent.step);
      DDX_CHECK(early <= step_.receives);
      agent.receives_left = step_.receives - early;
      agent.sends_left = static_cast<std::uint32_t>(step_.sends.size());
      for (const Send& send : step_.sends) post(id, call.base + send.to, send);
      if (!agent.awaiting.empty()) admit_awaiting(agent);
      if (agent.receives_left > 0 || agent.sends_left > 0) return;
    }
    finish_agent(agent);
  }

  void post(std::uint32_t from, std::uint32_t to, const Send& send) {
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
    message.to = to;
    message.to_step = send.to_step;
    const Pace& pace = calls_[agents_[from].call].pace;
    message.bytes = scaled(send.bytes, pace.bytes);
    count(agents_[from]);
    count(agents_[to]);
    message.path = path_of(calls_[agents_[from].call], agents_[from].member, agents_[to].member);
    if (pace.latency != Pace::kWhole) {
      const auto latency = static_cast<std::uint64_t>(message.path.latency);
      message.path.latency = static_cast<Picos>(scaled(latency, pace.latency));
    }
    // The parts of a port are those of a flat network; on any other, messages take what there is.
    set_speed(message, network_.flat() ? scaled(send.slot_bytes, pace.bytes) : message.bytes);
    Agent& receiver = agents_[to];
    if (send.awaits_receiver && !(receiver.awake && receiver.step == send.to_step)) {
      receiver.awaiting.push_back(id);
    } else {
      beginning_.push_back(id);
    }
  }

  void count(const Agent& agent) {
    Call& call = calls_[agent.call];
    if (agent.member < call.messages.size()) ++call.messages[agent.member];
  }

  Path path_of(const Call& call, std::uint32_t from, std::uint32_t to) const {
    const std::vector<std::uint32_t>& ranks = call.ranks;
    if (from >= ranks.size()) return network_.from_switch(ranks[to], *call.switches);
    if (to >= ranks.size()) return network_.to_switch(ranks[from], *call.switches);
    return network_.path(ranks[from], ranks[to]);
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

  const Network network_;
  std::vector<Call> calls_;  // those of free_calls_ are over
  std::vector<CallId> free_calls_;
  std::uint32_t active_ = 0;
  std::map<std::uint32_t, std::vector<std::uint32_t>> free_agents_;  // by their number: where they begin
  std::optional<Lone> lone_;
  std::vector<End> ends_;  // of this time
  // How long after the arrival of all each member is done, where nothing else is under way.
  std::unordered_map<std::uint64_t, std::vector<Picos>, KeyedHash> known_;
  Picos now_ = 0;
  TimeQueue<Event> queue_;
  std::vector<Agent> agents_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_messages_;
  std::vector<std::uint32_t> beginning_;  // at now_
  std::vector<Link> links_;
  FlowSet shared_;
  std::vector<std::uint32_t> message_of_flow_;
  Speed speed_;  // of the message before
  // Kept for their memory.
  std::vector<Event> due_;
  std::vector<FlowSet::FlowId> finished_;
  std::vector<LinkUse> uses_;
  Step step_;
};

StepNetwork::CallId StepNetwork::State::begin(const Algorithm& algorithm, const Work& work,
                                              std::vector<std::uint32_t> ranks, std::optional<std::uint64_t> alike,
                                              const Pace& pace) {
  check_ranks(network_, ranks);
  const Members members = members_on(network_, ranks);
  if (!algorithm.runs(work.kind, members)) {
    throw Error(std::string(algorithm.name) + ": no " + std::string(name_of(work.kind)) + " of " +
                std::to_string(ranks.size()) + " ranks");
  }
  if (lone_) stop_going_alone();
  auto id = static_cast<CallId>(calls_.size());
  if (free_calls_.empty()) {
    calls_.emplace_back();
  } else {
    id = free_calls_.back();
    free_calls_.pop_back();
  }
  Call& call = calls_[id] = Call();
  call.schedule = in_channels(algorithm, work, members, pace.channels);
  call.pace = pace;
  call.work = work;
  call.algorithm = algorithm.name;
  call.switches = algorithm.reduces_in;
  call.ranks = std::move(ranks);
  call.alike = alike;
  lay_out_agents(call, id);
  if (++active_ > 1) {
    for (Call& other : calls_) other.alone = false;
  }
  return id;
}

std::uint32_t StepNetwork::State::place_for(std::uint32_t agents) {
  auto& free = free_agents_[agents];
  if (!free.empty()) {
    const std::uint32_t base = free.back();
    free.pop_back();
    return base;
  }
  agents_.resize(agents_.size() + agents);
  return static_cast<std::uint32_t>(agents_.size()) - agents;
}

void StepNetwork::State::lay_out_agents(Call& call, CallId id) {
  const auto members = static_cast<std::uint32_t>(call.ranks.size());
  call.left.assign(members, 0);
  call.ends.assign(members, 0);
  call.messages.assign(members, 0);
  std::vector<std::uint32_t> member_of(call.schedule->agents());
  for (std::uint32_t at = 0; at < member_of.size(); ++at) {
    member_of[at] = call.schedule->member_of(at);
    if (member_of[at] < members) ++call.left[member_of[at]];
  }
  const auto scheduled = static_cast<std::uint32_t>(member_of.size());
  for (std::uint32_t member = 0; member < members; ++member) {
    if (call.left[member] > 0) continue;
    member_of.push_back(member);  // it has nothing to do, and is done when it comes
    call.left[member] = 1;
  }
  call.agents = call.agents_left = static_cast<std::uint32_t>(member_of.size());
  call.base = place_for(call.agents);
  call.groups.assign(members + std::size_t{2}, 0);
  for (std::uint32_t at = 0; at < call.agents; ++at) {
    Agent& agent = agents_[call.base + at];
    agent = Agent();
    agent.member = member_of[at];
    agent.steps = at < scheduled ? call.schedule->steps(at) : 0;
    agent.call = id;
    ++call.groups[std::min(agent.member, members) + std::size_t{1}];
  }
  std::partial_sum(call.groups.begin(), call.groups.end(), call.groups.begin());
  call.by_member.resize(call.agents);
  std::vector<std::uint32_t> next(call.groups.begin(), call.groups.end() - 1);
  for (std::uint32_t at = call.base; at < call.base + call.agents; ++at) {
    call.by_member[next[std::min(agents_[at].member, members)]++] = at;
  }
}

void StepNetwork::State::wake(const Call& call, std::uint32_t group, Picos time) {
  for (std::uint32_t at = call.groups[group]; at < call.groups[group + 1]; ++at) {
    queue_.push(later(time, call.pace.launch), {call.by_member[at], EventKind::wake});
  }
}

void StepNetwork::State::arrive(CallId id, std::uint32_t member, Picos time) {
  if (lone_) stop_going_alone();
  Call& call = calls_[id];
  if (call.arrived == 0) {
    call.first = call.earliest = time;
    // Switches do nothing but wait for what comes: they are there before anybody.
    wake(call, static_cast<std::uint32_t>(call.ranks.size()), now_);
  }
  ++call.arrived;
  call.earliest = std::min(call.earliest, time);
  call.together = call.together && time == call.first;
  wake(call, member, time);
}

void StepNetwork::State::finish_agent(const Agent& agent) {
  Call& call = calls_[agent.call];
  if (agent.member < call.left.size() && --call.left[agent.member] == 0) {
    call.ends[agent.member] = now_;
    ends_.push_back({agent.call, agent.member, now_});
  }
  if (--call.agents_left > 0) return;
  check(call);
  close(agent.call);
}

// From the first that comes to the last that is done: whoever is late, all of it goes through the ports between them.
// Of a call that is paced, what its pace puts on the links.
void StepNetwork::State::check(const Call& call) const {
  const Picos last = *std::max_element(call.ends.begin(), call.ends.end());
  const Picos rounding = *std::max_element(call.messages.begin(), call.messages.end());
  const Reduction reduction{call.switches == SwitchPlace::node, call.switches == SwitchPlace::fabric};
  Work work = call.work;
  work.bytes = std::min(work.bytes, scaled(work.bytes, call.pace.bytes));
  refuse_below_bound(work, call.ranks.size(), call.algorithm, last - call.earliest,
                     port_bound(work, network_, call.ranks, reduction), rounding);
}

// Its schedule and agents stay until the id is given again: what calls this still looks at them.
void StepNetwork::State::close(CallId id) {
  Call& call = calls_[id];
  if (call.alike && call.alone && call.together) {
    std::vector<Picos>& after = known_[*call.alike];
    after = call.ends;
    for (Picos& end : after) end -= call.first;
  }
  free_agents_[call.agents].push_back(call.base);
  free_calls_.push_back(id);
  --active_;
}

bool StepNetwork::State::may_go_alone() const {
  if (active_ != 1 || lone_ || queue_.empty() || !shared_.empty()) return false;
  const auto call = std::find_if(calls_.begin(), calls_.end(), [](const Call& each) { return each.agents_left > 0; });
  return call->alike && call->together && !call->stirred && call->arrived == call->ranks.size() &&
         known_.contains(*call->alike);
}

void StepNetwork::State::go_alone() {
  const auto found = std::find_if(calls_.begin(), calls_.end(), [](const Call& each) { return each.agents_left > 0; });
  Lone& lone = lone_.emplace(Lone{});
  lone.call = static_cast<CallId>(found - calls_.begin());
  const std::vector<Picos>& after = known_.at(*found->alike);
  for (std::uint32_t member = 0; member < after.size(); ++member) {
    lone.ends.push_back({lone.call, member, found->first + after[member]});
  }
  std::sort(lone.ends.begin(), lone.ends.end(),
            [](const End& a, const End& b) { return std::tie(a.time, a.member) < std::tie(b.time, b.member); });
  queue_ = {};
}

void StepNetwork::State::take_alone(std::vector<End>& ends) {
  const Picos time = lone_->ends[lone_->told].time;
  while (lone_->told < lone_->ends.size() && lone_->ends[lone_->told].time == time) {
    ends.push_back(lone_->ends[lone_->told++]);
  }
  now_ = time;
  if (lone_->told < lone_->ends.size()) return;
  Call& call = calls_[lone_->call];
  call.alone = false;  // what it took is known already
  call.agents_left = 0;
  lone_.reset();
  close(static_cast<CallId>(&call - calls_.data()));
}

// Another call comes: what has happened until now is made up for, step by step, without telling it again.
void StepNetwork::State::stop_going_alone() {
  const Lone lone = *std::exchange(lone_, std::nullopt);
  const Call& call = calls_[lone.call];
  const Picos until = lone.told == 0 ? -1 : lone.ends[lone.told - 1].time;
  for (std::uint32_t group = 0; group + 1 < call.groups.size(); ++group) wake(call, group, call.first);
  while (!queue_.empty() || !shared_.empty()) {
    const Picos finish = shared_.next_finish().value_or(kForever);
    if (std::min(finish, queue_.empty() ? kForever : queue_.next_time()) > until) break;
    next_instant();
  }
  now_ = std::max(until, call.first);
  ends_.clear();
}

bool StepNetwork::State::advance(std::vector<End>& ends) {
  ends.clear();
  if (may_go_alone()) go_alone();
  if (lone_) {
    take_alone(ends);
    return true;
  }
  if (queue_.empty() && shared_.empty()) return false;
  next_instant();
  std::sort(ends_.begin(), ends_.end(),
            [](const End& a, const End& b) { return std::tie(a.call, a.member) < std::tie(b.call, b.member); });
  ends.swap(ends_);
  ends_.clear();
  return true;
}

StepNetwork::StepNetwork(const Network& network) : state_(std::make_unique<State>(network)) {}
StepNetwork::~StepNetwork() = default;

StepNetwork::CallId StepNetwork::begin(const Algorithm& algorithm, const Work& work, std::vector<std::uint32_t> ranks,
                                       std::optional<std::uint64_t> alike, const Pace& pace) {
  return state_->begin(algorithm, work, std::move(ranks), alike, pace);
}
void StepNetwork::arrive(CallId call, std::uint32_t member, Picos time) { state_->arrive(call, member, time); }
bool StepNetwork::advance(std::vector<End>& ends) { return state_->advance(ends); }

}  // namespace ddx::sim
