#include "analyzers/match/wait_graph.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include "analyzers/match/channels.h"
#include "analyzers/match/components.h"
#include "base/check.h"

namespace ddx::analyzers {
namespace {

WaitGraph empty_graph(const JobView& job) {
  WaitGraph graph;
  graph.ranks = job.known.values();
  graph.waits_in.resize(graph.ranks.size());
  graph.awaited_in.resize(graph.ranks.size());
  return graph;
}

const Call* first_in_flight(const MemberView& member) {
  // From the back: on a stream calls complete in order, so that what is complete lies in front. Without streams (gloo)
  // a call may be open that later ones have overtaken.
  const Call* first = nullptr;
  for (std::size_t i = member.issued; i-- > 0;) {
    if (member.in_flight(member.calls[i])) {
      first = &member.calls[i];
    } else if (member.record->stream_ordered && member.program->state(member.calls[i].row) == OpState::completed) {
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

// Of a list that ends before its rank did nobody can say what it lacks.
bool shows_all(const JobView& job, const MemberView& member) {
  return !member.record->tail_lost && !job.behind.contains(member.rank);
}

// The sends and receives of one channel that are not over, as waits.
class ChannelWaits {
 public:
  ChannelWaits(const JobView& job, std::uint32_t group, const std::pair<std::uint32_t, std::uint32_t>& ends,
               const Channel& channel, const std::vector<Orphan>& orphans, WaitGraph& graph)
      : job_(job),
        group_index_(group),
        group_(job.groups[group]),
        ends_(ends),
        channel_(channel),
        orphans_(orphans),
        graph_(graph) {}

  void add() {
    const auto send_partner = [&](std::size_t i) { return recv_of(channel_, i); };
    const auto recv_partner = [&](std::size_t i) { return send_of(channel_, i); };
    const bool met = add_met(channel_.sends, channel_.recvs, send_partner, false);
    if (!met) add_met(channel_.recvs, channel_.sends, recv_partner, true);
    add_unmet(channel_.sends, channel_.recvs, send_partner, false);
    add_unmet(channel_.recvs, channel_.sends, recv_partner, true);
  }

 private:
  bool in_flight(const Posted& call) const { return group_.members[call.member].in_flight(call.row); }

  std::uint32_t rank_of(const Posted& call) const { return graph_.index_of(group_.members[call.member].rank); }

  Instance instance_of(const Posted& call) const {
    Instance instance;
    instance.group = group_index_;
    instance.p2p = true;
    instance.member = call.member;
    instance.row = call.row;
    instance.waiters = {rank_of(call)};
    return instance;
  }

  // The first call that has met its partner and does not end: nobody is missing in it. A send whose receive is over is
  // over too, only not seen to be yet.
  template <typename Partner>
  bool add_met(const std::vector<Posted>& calls, const std::vector<Posted>& partners, Partner partner_of,
               bool receives) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::ptrdiff_t partner = partner_of(i);
      if (partner >= static_cast<std::ptrdiff_t>(partners.size())) return false;
      if (!in_flight(calls[i])) continue;
      const bool both = partner >= 0 && in_flight(partners[static_cast<std::size_t>(partner)]);
      if (!both && !receives) continue;
      Instance instance = instance_of(calls[i]);
      instance.partner_over = !both;
      if (both && rank_of(partners[static_cast<std::size_t>(partner)]) != instance.waiters[0]) {
        instance.waiters.push_back(rank_of(partners[static_cast<std::size_t>(partner)]));
      }
      add_instance(graph_, std::move(instance));
      return true;
    }
    return false;
  }

  // The first call whose partner is not posted.
  template <typename Partner>
  void add_unmet(const std::vector<Posted>& calls, const std::vector<Posted>& partners, Partner partner_of,
                 bool receives) {
    const MemberView* partner = group_.member_at(receives ? ends_.first : ends_.second);
    if (!partner) return;  // outside the communicator: peer-range
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (!in_flight(calls[i]) || partner_of(i) < static_cast<std::ptrdiff_t>(partners.size())) continue;
      Instance instance = instance_of(calls[i]);
      instance.partner_sends = receives;
      const bool reach_known = partner->record && shows_all(job_, *partner);
      if (!partner->record) instance.unseen.push_back(graph_.index_of(partner->rank));
      const bool never = is_orphan(orphans_, group_index_, instance.member, instance.row);
      if (reach_known && !never) instance.missing.push_back(graph_.index_of(partner->rank));
      add_instance(graph_, std::move(instance));
      return;
    }
  }

  const JobView& job_;
  std::uint32_t group_index_;
  const GroupView& group_;
  const std::pair<std::uint32_t, std::uint32_t>& ends_;
  const Channel& channel_;
  const std::vector<Orphan>& orphans_;
  WaitGraph& graph_;
};

void add_p2p(const JobView& job, std::uint32_t group, const std::vector<Orphan>& orphans, WaitGraph& graph) {
  for (const auto& [ends, channel] : channels_of(job, job.groups[group])) {
    ChannelWaits(job, group, ends, channel, orphans, graph).add();
  }
}

// The row in which `rank` waits in an instance.
std::optional<std::uint32_t> row_in(const JobView& job, const WaitGraph& graph, const Instance& instance,
                                    std::uint32_t rank) {
  const GroupView& group = job.groups[instance.group];
  if (graph.index_of(group.members[instance.member].rank) == rank) return instance.row;
  const MemberView* member = instance.p2p ? nullptr : group.member_of(graph.ranks[rank]);
  const Call* call = member && member->record ? member->call_at(instance.seq) : nullptr;
  return call ? std::optional(call->row) : std::nullopt;
}

// Whether the later call cannot begin before the earlier one is over: then whoever waits for the later waits for both.
bool queued_behind(const JobView& job, const RankRecord& record, std::uint32_t earlier, std::uint32_t later) {
  const Program& program = job.trace->program(record);
  const auto batch = program.group(earlier);
  if (batch && batch == program.group(later)) return true;
  const Signature& a = job.trace->signature(program.signature(earlier));
  const Signature& b = job.trace->signature(program.signature(later));
  if (a.stream || b.stream) return a.stream == b.stream;
  if (program.comm_slot(earlier) != program.comm_slot(later) || is_p2p(a.kind) != is_p2p(b.kind)) return false;
  return !is_p2p(a.kind) || job.trace->peer(record, a) == job.trace->peer(record, b);
}

// A rank that is inside several calls has gone on from all but the last one.
void mark_passed(const JobView& job, WaitGraph& graph) {
  graph.passed.resize(graph.ranks.size());
  for (std::uint32_t rank = 0; rank < graph.ranks.size(); ++rank) {
    const RankView* view = graph.waits_in[rank].size() > 1 ? job.view_of(graph.ranks[rank]) : nullptr;
    if (!view) continue;
    std::optional<std::uint32_t> last;
    for (const std::uint32_t id : graph.waits_in[rank]) {
      if (const auto row = row_in(job, graph, graph.instances[id], rank)) last = std::max(last.value_or(0), *row);
    }
    for (const std::uint32_t id : graph.waits_in[rank]) {
      const auto row = row_in(job, graph, graph.instances[id], rank);
      if (row && *row != *last && !queued_behind(job, *view->record, *row, *last)) graph.passed[rank].push_back(id);
    }
  }
}

bool waits_for_itself(const WaitGraph& graph, std::uint32_t rank) {
  return std::any_of(graph.waits_in[rank].begin(), graph.waits_in[rank].end(), [&](std::uint32_t id) {
    const auto& missing = graph.instances[id].missing;
    return std::binary_search(missing.begin(), missing.end(), rank);
  });
}

// Ranks of each set in which all wait for each other, `removed` left out.
std::vector<std::vector<std::uint32_t>> circles_without(const WaitGraph& graph, std::optional<std::uint32_t> removed) {
  // Nodes are ranks [0, R) and instances [R, R + I).
  const auto ranks = static_cast<std::uint32_t>(graph.ranks.size());
  const auto next = [&](std::uint32_t node, std::size_t edge) -> std::optional<std::uint32_t> {
    const bool is_rank = node < ranks;
    const auto& edges = is_rank ? graph.waits_in[node] : graph.instances[node - ranks].missing;
    if (edge >= edges.size()) return std::nullopt;
    return is_rank ? edges[edge] + ranks : edges[edge];
  };
  std::vector<std::vector<std::uint32_t>> found;
  for (std::vector<std::uint32_t>& nodes : components(ranks + graph.instances.size(), next, removed)) {
    std::erase_if(nodes, [ranks](std::uint32_t node) { return node >= ranks; });
    if (nodes.empty() || (nodes.size() == 1 && !waits_for_itself(graph, nodes.front()))) continue;
    found.push_back(std::move(nodes));
  }
  return found;
}

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

// What every rank's device is at, by rank's index.
using Heads = std::vector<std::optional<Head>>;

// All ranks whose device is at one collective wait for the members whose device is at something before it. One instance
// for all of them: one a rank would cost the square of the ranks.
void add_collective_heads(const JobView& job, const Heads& heads, WaitGraph& graph) {
  std::map<CallPlace, Instance> instances;
  for (std::uint32_t rank = 0; rank < heads.size(); ++rank) {
    const auto& head = heads[rank];
    if (!head || head->p2p) continue;
    const MemberView& own = job.groups[head->group].members[head->member];
    const CallPlace place{head->group, own.program->seq(head->row).value_or(0)};
    Instance& instance = instances[place];
    if (instance.waiters.empty()) {
      instance.group = place.group;
      instance.seq = place.seq;
      instance.member = head->member;
      instance.row = head->row;
    }
    instance.waiters.push_back(rank);
  }
  for (auto& [place, instance] : instances) {
    const GroupView& group = job.groups[place.group];
    for (std::uint32_t i = 0; i < group.members.size(); ++i) {
      const MemberView& member = group.members[i];
      const Call* call = member.record ? member.call_at(place.seq) : nullptr;
      if (!call || !member.in_flight(*call)) continue;
      const std::uint32_t rank = graph.index_of(member.rank);
      const auto& at = heads[rank];
      const bool there = at && at->group == place.group && at->member == i && at->row >= call->row;
      if (at && !there) instance.missing.push_back(rank);
    }
    std::sort(instance.missing.begin(), instance.missing.end());
    add_instance(graph, std::move(instance));
  }
}

// Whether a device that is at `at` has to be done with that before `row` begins.
bool begins_after(const JobView& job, const MemberView& member, std::uint32_t at, std::uint32_t row) {
  const Program& program = *member.program;
  const auto batch = program.group(at);
  if (row <= at || (batch && batch == program.group(row))) return false;
  // Where starts are recorded, a call that has not started stands behind what has.
  const bool stands = member.record->timing.value_or(false) && program.state(row) == OpState::scheduled &&
                      program.state(at) == OpState::started;
  return stands || queued_behind(job, *member.record, at, row);
}

// The send or receive that a device is at, and how its partner stands to that.
class P2pHead {
 public:
  P2pHead(const JobView& job, const Channels& channels, const Head& head)
      : job_(job),
        head_(head),
        group_(job.groups[head.group]),
        own_(group_.members[head.member]),
        sends_(job.trace->signature(own_.program->signature(head.row)).kind == OpKind::send) {
    const auto peer = job.trace->peer(*own_.record, job.trace->signature(own_.program->signature(head.row)));
    if (!peer || *peer < 0) return;
    const auto other = static_cast<std::uint32_t>(*peer);
    partner_ = group_.member_at(other);
    const auto at = channels.find(sends_ ? std::pair(own_.position, other) : std::pair(other, own_.position));
    if (at != channels.end()) channel_ = &at->second;
  }

  const MemberView* partner() const {
    return partner_ && partner_->record && partner_->rank != own_.rank ? partner_ : nullptr;
  }

  Instance instance(std::uint32_t rank) const {
    Instance instance;
    instance.group = head_.group;
    instance.p2p = true;
    instance.member = head_.member;
    instance.row = head_.row;
    instance.waiters = {rank};
    return instance;
  }

  bool partner_sends() const { return !sends_; }

  // Where the partner's device is at another send or receive of the group: whether its own call of this pair has not
  // been posted, or (true) begins only behind that one. nullopt: neither, both may be under way.
  std::optional<bool> behind(const Head& at) const {
    if (!channel_) return std::nullopt;
    const auto& calls = sends_ ? channel_->sends : channel_->recvs;
    const auto& partners = sends_ ? channel_->recvs : channel_->sends;
    const auto own = std::find_if(calls.begin(), calls.end(), [&](const Posted& call) {
      return call.member == head_.member && call.row == head_.row;
    });
    if (own == calls.end()) return std::nullopt;
    const auto index = static_cast<std::size_t>(own - calls.begin());
    const std::ptrdiff_t meets = sends_ ? recv_of(*channel_, index) : send_of(*channel_, index);
    if (meets >= std::ssize(partners)) {
      return shows_all(job_, *partner_) ? std::optional(false) : std::nullopt;
    }
    if (meets < 0) return std::nullopt;
    const std::uint32_t row = partners[static_cast<std::size_t>(meets)].row;
    return partner_->in_flight(row) && begins_after(job_, *partner_, at.row, row) ? std::optional(true) : std::nullopt;
  }

 private:
  const JobView& job_;
  const Head& head_;
  const GroupView& group_;
  const MemberView& own_;
  bool sends_;
  const MemberView* partner_ = nullptr;
  const Channel* channel_ = nullptr;
};

void add_p2p_head(const JobView& job, const Channels& channels, const Heads& heads, std::uint32_t rank,
                  WaitGraph& graph) {
  const P2pHead head(job, channels, *heads[rank]);
  Instance instance = head.instance(rank);
  if (const MemberView* partner = head.partner()) {
    const std::uint32_t other = graph.index_of(partner->rank);
    const auto& at = heads[other];
    if (at && at->group == instance.group && at->p2p) {
      const auto behind = head.behind(*at);
      instance.partner_queued = behind.value_or(false);
      if (behind) {
        instance.partner_sends = head.partner_sends();
        instance.missing.push_back(other);
      }
    } else if (at) {
      instance.missing.push_back(other);
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

WaitGraph missing_call_graph(const JobView& job, const std::vector<CallPlace>& diverged,
                             const std::vector<Orphan>& orphans) {
  WaitGraph graph = empty_graph(job);
  const std::set<CallPlace> broken(diverged.begin(), diverged.end());
  for (std::uint32_t group = 0; group < job.groups.size(); ++group) {
    add_collectives(job, group, broken, graph);
    add_p2p(job, group, orphans, graph);
  }
  mark_passed(job, graph);
  return graph;
}

WaitGraph without_passed(const WaitGraph& graph) {
  WaitGraph sure = graph;
  for (std::uint32_t rank = 0; rank < sure.passed.size(); ++rank) {
    for (const std::uint32_t id : sure.passed[rank]) {
      std::erase(sure.waits_in[rank], id);
      std::erase(sure.instances[id].waiters, rank);
    }
  }
  sure.passed.clear();
  return sure;
}

void add_instance(WaitGraph& graph, Instance instance) {
  const auto id = static_cast<std::uint32_t>(graph.instances.size());
  for (std::uint32_t rank : instance.waiters) graph.waits_in[rank].push_back(id);
  for (std::uint32_t rank : instance.missing) graph.awaited_in[rank].push_back(id);
  for (std::uint32_t rank : instance.unseen) graph.awaited_in[rank].push_back(id);
  graph.instances.push_back(std::move(instance));
}

WaitGraph issue_order_graph(const JobView& job) {
  WaitGraph graph = empty_graph(job);
  Heads heads(graph.ranks.size());
  for (const RankView& view : job.ranks) heads[graph.index_of(view.rank)] = head_of(job, view);
  add_collective_heads(job, heads, graph);
  std::map<std::uint32_t, Channels> channels;  // by group
  for (std::uint32_t rank = 0; rank < heads.size(); ++rank) {
    if (!heads[rank] || !heads[rank]->p2p) continue;
    const auto [at, fresh] = channels.try_emplace(heads[rank]->group);
    if (fresh) at->second = channels_of(job, job.groups[heads[rank]->group]);
    add_p2p_head(job, at->second, heads, rank, graph);
  }
  return graph;
}

std::vector<std::vector<std::uint32_t>> cycles(const WaitGraph& graph) {
  auto found = circles_without(graph, std::nullopt);
  std::sort(found.begin(), found.end());
  return found;
}

// The part of `graph` in which the ranks of `set` wait for each other; ranks by their index in `set`.
WaitGraph inside_of(const WaitGraph& graph, const std::vector<std::uint32_t>& set) {
  const auto local = [&](std::uint32_t rank) -> std::optional<std::uint32_t> {
    const auto at = std::lower_bound(set.begin(), set.end(), rank);
    if (at == set.end() || *at != rank) return std::nullopt;
    return static_cast<std::uint32_t>(at - set.begin());
  };
  WaitGraph part;
  part.ranks.resize(set.size());
  part.waits_in.resize(set.size());
  part.awaited_in.resize(set.size());
  std::map<std::uint32_t, Instance> instances;
  for (std::uint32_t i = 0; i < set.size(); ++i) {
    for (const std::uint32_t id : graph.waits_in[set[i]]) instances[id].waiters.push_back(i);
  }
  for (auto& [id, instance] : instances) {
    for (const std::uint32_t rank : graph.instances[id].missing) {
      if (const auto at = local(rank)) instance.missing.push_back(*at);
    }
    if (!instance.missing.empty()) add_instance(part, std::move(instance));
  }
  return part;
}

std::vector<std::uint32_t> on_every_cycle(const WaitGraph& graph, const std::vector<std::uint32_t>& set) {
  constexpr std::size_t kTried = 256;
  const WaitGraph part = inside_of(graph, set);
  // Whoever is on every circle is waited for by many: try those first, and only so many.
  std::vector<std::size_t> awaited(set.size(), 0);
  std::vector<std::uint32_t> order(set.size());
  for (std::uint32_t i = 0; i < set.size(); ++i) {
    order[i] = i;
    for (const std::uint32_t id : part.awaited_in[i]) awaited[i] += part.instances[id].waiters.size();
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return awaited[a] > awaited[b]; });
  std::vector<std::uint32_t> all;
  for (std::size_t i = 0; i < std::min(order.size(), kTried); ++i) {
    if (circles_without(part, order[i]).empty()) all.push_back(set[order[i]]);
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<CycleStep> shortest_cycle_of_ranks(const WaitGraph& graph, const std::vector<std::uint32_t>& set,
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

// A shortest way from `first`, in which `start` waits, back to it, where each rank is held in calls of its own.
std::vector<CycleStep> way_back(const WaitGraph& graph, const CycleStep& first) {
  std::map<std::uint32_t, std::pair<std::uint32_t, CycleStep>> came_from;  // instance -> the one before, own step
  std::deque<CycleStep> queue{first};
  while (!queue.empty()) {
    const CycleStep at = queue.front();
    queue.pop_front();
    for (const CycleStep& next : graph.held_in[at.instance]) {
      const bool closed = next.rank == first.rank && next.instance == first.instance;
      if (!closed && !came_from.try_emplace(next.instance, at.instance, next).second) continue;
      if (!closed) {
        if (next.instance != first.instance) queue.push_back(next);
        continue;
      }
      std::vector<CycleStep> steps{at};
      while (steps.back().instance != first.instance) {
        const std::uint32_t before = came_from.at(steps.back().instance).first;
        steps.push_back(before == first.instance ? first : came_from.at(before).second);
      }
      std::reverse(steps.begin(), steps.end());
      return steps;
    }
  }
  return {};
}

std::vector<CycleStep> shortest_cycle(const WaitGraph& graph, const std::vector<std::uint32_t>& set,
                                      std::uint32_t start) {
  std::vector<CycleStep> best;
  for (std::size_t i = 0; !graph.held_in.empty() && i < graph.waits_in[start].size(); ++i) {
    auto steps = way_back(graph, {start, graph.waits_in[start][i]});
    if (best.empty() || (!steps.empty() && steps.size() < best.size())) best = std::move(steps);
  }
  return best.empty() ? shortest_cycle_of_ranks(graph, set, start) : best;
}

std::vector<std::uint32_t> who_waits_on(const WaitGraph& graph, const std::vector<std::uint32_t>& targets) {
  std::vector<bool> reached(graph.ranks.size(), false), spent(graph.instances.size(), false);
  std::deque<std::uint32_t> queue(targets.begin(), targets.end());
  for (std::uint32_t target : targets) reached[target] = true;
  std::vector<std::uint32_t> all;
  while (!queue.empty()) {
    const std::uint32_t rank = queue.front();
    queue.pop_front();
    for (std::uint32_t instance : graph.awaited_in[rank]) {
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
