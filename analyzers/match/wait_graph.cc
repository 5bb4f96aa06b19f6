#include "analyzers/match/wait_graph.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include "analyzers/match/channels.h"
#include "base/check.h"

namespace ddx::analyzers {
namespace {

WaitGraph empty_graph(const JobView& job) {
  WaitGraph graph;
  graph.ranks = job.known.values();
  graph.waits_in.resize(graph.ranks.size());
  return graph;
}

void add_instance(WaitGraph& graph, Instance instance) {
  const auto id = static_cast<std::uint32_t>(graph.instances.size());
  for (std::uint32_t rank : instance.waiters) graph.waits_in[rank].push_back(id);
  graph.instances.push_back(std::move(instance));
}

const Call* first_in_flight(const MemberView& member) {
  // From the back: what is complete lies in front, and calls complete in order.
  const Call* first = nullptr;
  for (std::size_t i = member.issued; i-- > 0;) {
    if (member.in_flight(member.calls[i])) {
      first = &member.calls[i];
    } else if (member.program->state(member.calls[i].row) == OpState::completed) {
      break;
    }
  }
  return first;
}

// The last sequence number that every member with a whole record has enqueued; absent: no such member.
std::optional<std::uint64_t> enqueued_by_all(const GroupView& group) {
  std::optional<std::uint64_t> least;
  for (const MemberView& member : group.members) {
    if (!member.record || !member.reach_known || !member.record->snapshot) continue;
    const std::uint64_t last = member.last_enqueued.value_or(0);
    least = std::min(least.value_or(last), last);
  }
  return least;
}

// A recorder that only tells "over" (gloo) shows a call that timed out like one that completed. What cannot have
// completed, since a member never made it, is a wait that was given up.
const Call* given_up(const JobView& job, const MemberView& member, std::optional<std::uint64_t> by_all) {
  if (!by_all || !only_tells_over(*member.record)) return nullptr;
  for (std::size_t i = member.issued; i-- > 0;) {
    const Call& call = member.calls[i];
    if (call.seq <= *by_all) break;
    const OpKind kind = job.trace->signature(member.program->signature(call.row)).kind;
    if (call.seq == *by_all + 1 && synchronizes(kind) && member.completed(call)) return &call;
  }
  return nullptr;
}

// In which sequence numbers of a group the members are, each in its first call that is not complete.
void add_collectives(const JobView& job, std::uint32_t group_index, const std::set<CallPlace>& diverged,
                     WaitGraph& graph) {
  const GroupView& group = job.groups[group_index];
  const auto by_all = enqueued_by_all(group);
  std::map<std::uint32_t, Instance> by_seq;
  for (std::uint32_t i = 0; i < group.members.size(); ++i) {
    const MemberView& member = group.members[i];
    if (!member.record) continue;
    const Call* over = given_up(job, member, by_all);
    const Call* call = over ? over : first_in_flight(member);
    if (!call) continue;
    Instance& instance = by_seq[call->seq];
    if (instance.waiters.empty()) {
      instance.group = group_index;
      instance.seq = call->seq;
      instance.member = i;
      instance.row = call->row;
    }
    instance.gave_up = instance.gave_up || over;
    instance.waiters.push_back(graph.index_of(member.rank));
  }
  for (auto& [seq, instance] : by_seq) {
    instance.diverged = diverged.contains(CallPlace{group_index, seq});
    for (const MemberView& member : group.members) {
      if (!member.record) {
        instance.unseen.push_back(graph.index_of(member.rank));
      } else if (member.reach_known && member.last_enqueued.value_or(0) < seq) {
        instance.missing.push_back(graph.index_of(member.rank));
      }
    }
    add_instance(graph, std::move(instance));
  }
}

// A pair that met and does not end: nobody is missing in it.
void add_pair_in_flight(const JobView& job, std::uint32_t group_index, const Channel& channel, WaitGraph& graph) {
  const GroupView& group = job.groups[group_index];
  const auto [sender, row] = channel.sends.front();
  Instance instance;
  instance.group = group_index;
  instance.p2p = true;
  instance.member = sender;
  instance.row = row;
  instance.waiters = {graph.index_of(group.members[sender].rank),
                      graph.index_of(group.members[channel.recvs.front().member].rank)};
  add_instance(graph, std::move(instance));
}

void add_p2p(const JobView& job, std::uint32_t group_index, WaitGraph& graph) {
  const GroupView& group = job.groups[group_index];
  for (const auto& [ends, channel] : channels_of(job, group, Posts::pending)) {
    const std::size_t pairs = std::min(channel.sends.size(), channel.recvs.size());
    if (pairs > 0) add_pair_in_flight(job, group_index, channel, graph);
    if (channel.sends.size() == channel.recvs.size()) continue;
    const bool lone_send = channel.sends.size() > pairs;
    const auto [member, row] = lone_send ? channel.sends[pairs] : channel.recvs[pairs];
    const MemberView* partner = group.member_at(lone_send ? ends.second : ends.first);
    if (!partner) continue;  // outside the communicator: peer-range
    Instance instance;
    instance.group = group_index;
    instance.p2p = true;
    instance.waiters = {graph.index_of(group.members[member].rank)};
    auto& list = partner->record ? instance.missing : instance.unseen;
    list.push_back(graph.index_of(partner->rank));
    instance.member = member;
    instance.row = row;
    instance.partner_sends = !lone_send;
    add_instance(graph, std::move(instance));
  }
}

// Tarjan's algorithm over ranks [0, R) and instances [R, R + I), without recursion. `removed` is left out.
class Components {
 public:
  Components(const WaitGraph& graph, std::optional<std::uint32_t> removed) : graph_(graph), removed_(removed) {
    const std::size_t nodes = graph.ranks.size() + graph.instances.size();
    index_.assign(nodes, kUnvisited);
    low_.assign(nodes, 0);
    on_stack_.assign(nodes, false);
  }

  void visit_from(std::uint32_t root) {
    if (index_[root] != kUnvisited || root == removed_) return;
    std::vector<std::pair<std::uint32_t, std::size_t>> path{{root, 0}};
    open(root);
    while (!path.empty()) {
      auto& [node, edge] = path.back();
      const std::vector<std::uint32_t>& next = edges(node);
      if (edge < next.size()) {
        const std::uint32_t to = target(node, next[edge++]);
        if (to == removed_) continue;
        if (index_[to] == kUnvisited) {
          open(to);
          path.emplace_back(to, 0);
        } else if (on_stack_[to]) {
          low_[node] = std::min(low_[node], index_[to]);
        }
        continue;
      }
      const std::uint32_t done = node;
      path.pop_back();
      if (!path.empty()) low_[path.back().first] = std::min(low_[path.back().first], low_[done]);
      if (low_[done] == index_[done]) close(done);
    }
  }

  std::vector<std::vector<std::uint32_t>> found;  // ranks of each component with two or more ranks

 private:
  static constexpr std::uint32_t kUnvisited = 0xffffffff;

  bool is_rank(std::uint32_t node) const { return node < graph_.ranks.size(); }
  const std::vector<std::uint32_t>& edges(std::uint32_t node) const {
    return is_rank(node) ? graph_.waits_in[node] : graph_.instances[node - graph_.ranks.size()].missing;
  }
  std::uint32_t target(std::uint32_t from, std::uint32_t id) const {
    return is_rank(from) ? id + static_cast<std::uint32_t>(graph_.ranks.size()) : id;
  }
  void open(std::uint32_t node) {
    index_[node] = low_[node] = counter_++;
    stack_.push_back(node);
    on_stack_[node] = true;
  }
  void close(std::uint32_t root) {
    std::vector<std::uint32_t> ranks;
    while (true) {
      const std::uint32_t node = stack_.back();
      stack_.pop_back();
      on_stack_[node] = false;
      if (is_rank(node)) ranks.push_back(node);
      if (node == root) break;
    }
    if (ranks.size() < 2) return;
    std::sort(ranks.begin(), ranks.end());
    found.push_back(std::move(ranks));
  }

  const WaitGraph& graph_;
  std::optional<std::uint32_t> removed_;
  std::vector<std::uint32_t> index_, low_, stack_;
  std::vector<bool> on_stack_;
  std::uint32_t counter_ = 0;
};

// The first thing in a rank's order of issue that is not complete.
struct Head {
  std::uint32_t group = RankView::kNoGroup;
  std::uint32_t member = 0;
  std::uint32_t row = 0;
  bool p2p = false;
};

std::optional<Head> head_of(const JobView& job, const RankView& view) {
  std::optional<Head> head;
  const auto take = [&](const RankView::Place& place, std::uint32_t row, bool p2p) {
    if (!head || row < head->row) head = Head{place.group, place.member, row, p2p};
  };
  for (const RankView::Place& place : view.by_slot) {
    if (place.group == RankView::kNoGroup) continue;
    const MemberView& member = job.groups[place.group].members[place.member];
    if (const Call* call = first_in_flight(member)) take(place, call->row, false);
    for (std::size_t k = 0; k < member.p2p_issued; ++k) {
      if (member.in_flight(member.p2p[k])) {
        take(place, member.p2p[k], true);
        break;
      }
    }
  }
  return head;
}

// Whether `member` has not come to the call of `head` yet because its own head is another, earlier one.
bool is_behind(const std::optional<Head>& own, const Head& wanted, std::uint32_t member, std::uint32_t row) {
  return own && !(own->group == wanted.group && own->member == member && own->row >= row);
}

void add_issue_order(const JobView& job, const std::map<RankId, Head>& heads, const RankView& view, const Head& head,
                     WaitGraph& graph) {
  const GroupView& group = job.groups[head.group];
  const MemberView& own = group.members[head.member];
  Instance instance;
  instance.group = head.group;
  instance.p2p = head.p2p;
  instance.member = head.member;
  instance.row = head.row;
  instance.waiters = {graph.index_of(view.rank)};
  const Signature& s = job.trace->signature(own.program->signature(head.row));
  const auto peer = head.p2p ? job.trace->peer(*own.record, s) : std::nullopt;
  if (!head.p2p) instance.seq = own.program->seq(head.row).value_or(0);
  for (std::uint32_t i = 0; i < group.members.size(); ++i) {
    const MemberView& member = group.members[i];
    if (i == head.member || !member.record) continue;
    if (head.p2p && (!peer || static_cast<std::int64_t>(member.position) != *peer)) continue;
    const auto at = heads.find(member.rank);
    const std::optional<Head> other = at == heads.end() ? std::nullopt : std::optional(at->second);
    if (head.p2p) {
      const bool same = other && other->group == head.group && other->p2p;
      if (other && !same) instance.missing.push_back(graph.index_of(member.rank));
      continue;
    }
    const Call* call = member.call_at(instance.seq);
    if (call && member.in_flight(*call) && is_behind(other, head, i, call->row)) {
      instance.missing.push_back(graph.index_of(member.rank));
    }
  }
  add_instance(graph, std::move(instance));
}

}  // namespace

std::uint32_t WaitGraph::index_of(RankId rank) const {
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank);
  DDX_CHECK(at != ranks.end() && *at == rank);
  return static_cast<std::uint32_t>(at - ranks.begin());
}

WaitGraph missing_call_graph(const JobView& job, const std::vector<CallPlace>& diverged) {
  WaitGraph graph = empty_graph(job);
  const std::set<CallPlace> broken(diverged.begin(), diverged.end());
  for (std::uint32_t group = 0; group < job.groups.size(); ++group) {
    add_collectives(job, group, broken, graph);
    add_p2p(job, group, graph);
  }
  return graph;
}

WaitGraph issue_order_graph(const JobView& job) {
  WaitGraph graph = empty_graph(job);
  std::map<RankId, Head> heads;
  for (const RankView& view : job.ranks) {
    if (const auto head = head_of(job, view)) heads.emplace(view.rank, *head);
  }
  for (const RankView& view : job.ranks) {
    if (const auto at = heads.find(view.rank); at != heads.end()) add_issue_order(job, heads, view, at->second, graph);
  }
  return graph;
}

std::vector<std::vector<std::uint32_t>> cycles(const WaitGraph& graph) {
  Components components(graph, std::nullopt);
  for (std::uint32_t rank = 0; rank < graph.ranks.size(); ++rank) components.visit_from(rank);
  std::sort(components.found.begin(), components.found.end());
  return components.found;
}

std::vector<std::uint32_t> on_every_cycle(const WaitGraph& graph, const std::vector<std::uint32_t>& set) {
  constexpr std::size_t kTried = 256;
  // Whoever is on every circle is waited for by many: try those first, and only so many.
  std::vector<std::size_t> awaited(graph.ranks.size(), 0);
  for (const Instance& instance : graph.instances) {
    for (std::uint32_t rank : instance.missing) awaited[rank] += instance.waiters.size();
  }
  std::vector<std::uint32_t> order = set;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return awaited[a] > awaited[b]; });
  std::vector<std::uint32_t> all;
  for (std::size_t i = 0; i < std::min(order.size(), kTried); ++i) {
    Components without(graph, order[i]);
    for (std::uint32_t rank : set) without.visit_from(rank);
    const bool still = std::any_of(without.found.begin(), without.found.end(), [&](const auto& found) {
      return std::find_first_of(found.begin(), found.end(), set.begin(), set.end()) != found.end();
    });
    if (!still) all.push_back(order[i]);
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<CycleStep> shortest_cycle(const WaitGraph& graph, const std::vector<std::uint32_t>& set,
                                      std::uint32_t start) {
  std::map<std::uint32_t, CycleStep> came_from;  // rank reached -> (rank before, instance)
  std::deque<std::uint32_t> queue{start};
  std::set<std::uint32_t> spent;  // instances
  while (!queue.empty() && !came_from.contains(start)) {
    const std::uint32_t rank = queue.front();
    queue.pop_front();
    for (std::uint32_t instance : graph.waits_in[rank]) {
      if (!spent.insert(instance).second) continue;
      for (std::uint32_t next : graph.instances[instance].missing) {
        if (!std::binary_search(set.begin(), set.end(), next) || came_from.contains(next)) continue;
        came_from[next] = {rank, instance};
        queue.push_back(next);
      }
    }
  }
  std::vector<CycleStep> steps;
  if (!came_from.contains(start)) return steps;
  std::uint32_t at = start;
  do {
    steps.push_back(came_from[at]);
    at = came_from[at].rank;
  } while (at != start);
  std::reverse(steps.begin(), steps.end());
  return steps;
}

std::vector<std::uint32_t> who_waits_on(const WaitGraph& graph, const std::vector<std::uint32_t>& targets) {
  std::vector<std::vector<std::uint32_t>> waited_in(graph.ranks.size());
  for (std::uint32_t i = 0; i < graph.instances.size(); ++i) {
    for (std::uint32_t rank : graph.instances[i].missing) waited_in[rank].push_back(i);
    for (std::uint32_t rank : graph.instances[i].unseen) waited_in[rank].push_back(i);
  }
  std::vector<bool> reached(graph.ranks.size(), false), spent(graph.instances.size(), false);
  std::deque<std::uint32_t> queue(targets.begin(), targets.end());
  for (std::uint32_t target : targets) reached[target] = true;
  std::vector<std::uint32_t> all;
  while (!queue.empty()) {
    const std::uint32_t rank = queue.front();
    queue.pop_front();
    for (std::uint32_t instance : waited_in[rank]) {
      if (spent[instance]) continue;
      spent[instance] = true;
      for (std::uint32_t waiter : graph.instances[instance].waiters) {
        if (reached[waiter]) continue;
        reached[waiter] = true;
        all.push_back(waiter);
        queue.push_back(waiter);
      }
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace ddx::analyzers
