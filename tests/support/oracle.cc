#include "tests/support/oracle.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "sim/replay/reference_replay.h"

namespace ddx::testing {
namespace {

using List = std::vector<Call>;
// What a rank does in one group, or on one way between two ranks of it: (group, from, to), -1 for collectives.
using Lane = std::tuple<std::string, int, int>;
using Lanes = std::map<Lane, List>;

Lane lane_of(const Call& call, int rank) {
  if (!is_p2p(call.kind)) return {call.group, -1, -1};
  return call.kind == OpKind::send ? Lane{call.group, rank, call.peer} : Lane{call.group, call.peer, rank};
}

bool communicates(const Call& call) { return is_collective(call.kind) || is_p2p(call.kind); }

Lanes lanes_of(const List& list, int rank) {
  Lanes lanes;
  for (const Call& call : list) {
    if (communicates(call)) lanes[lane_of(call, rank)].push_back(call);
  }
  return lanes;
}

// A send and its receive are the two ends of one call.
bool meets(const Call& a, const Call& b) {
  if (is_p2p(a.kind)) return is_p2p(b.kind) && a.type == b.type && a.count == b.count;
  return a.same_call(b);
}

bool meets(const List& a, const List& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Call& x, const Call& y) { return meets(x, y); });
}

bool completes(const CallLists& lists) {
  return sim::replay(trace_of(lists)).outcome == sim::ReplayResult::Outcome::completes;
}

// One rank on trial: what the others would have it do, lane by lane, and what it does.
class Trial {
 public:
  Trial(const CallLists& lists, const std::vector<Lanes>& lanes, int rank);
  bool can_be_put_right();

 private:
  bool others_agree();
  bool try_list(List list);
  bool try_stop();
  bool try_delete();
  bool try_swap();
  bool try_insert();
  bool try_replace();
  bool fits(const List& list) const;
  void compare();
  // Whether an edit of calls on these lanes can reach all that is wrong.
  bool covers(const Call& a, const Call& b) const;

  const CallLists& lists_;
  const std::vector<Lanes>& lanes_;
  const int rank_;
  const List& list_;
  Lanes wanted_;
  List candidates_;         // calls of the others that this rank could make
  std::set<Lane> differs_;  // lanes on which this rank does something else than wanted
};

Trial::Trial(const CallLists& lists, const std::vector<Lanes>& lanes, int rank)
    : lists_(lists), lanes_(lanes), rank_(rank), list_(lists.ranks[static_cast<std::size_t>(rank)]) {}

// Fills wanted_ and candidates_.
bool Trial::others_agree() {
  std::map<Lane, std::pair<const List*, int>> known;  // what is done on a lane, and by whom
  static const List kNothing;
  for (int other = 0; other < lists_.world; ++other) {
    if (other == rank_) continue;
    for (const auto& [lane, calls] : lanes_[static_cast<std::size_t>(other)]) {
      const auto [at, fresh] = known.try_emplace(lane, &calls, other);
      if (!fresh && !meets(*at->second.first, calls)) return false;
    }
  }
  for (const auto& [lane, first] : known) {
    const auto& [group, from, to] = lane;
    const auto members = from < 0 ? lists_.members(group) : std::vector<int>{from, to};
    for (const int member : members) {
      if (member == rank_) {
        wanted_[lane] = *first.first;
      } else if (!lanes_[static_cast<std::size_t>(member)].contains(lane)) {
        return false;
      }
    }
    if (!wanted_.contains(lane)) continue;
    for (Call call : wanted_[lane]) {
      if (from >= 0) {
        call.kind = from == rank_ ? OpKind::send : OpKind::recv;
        call.peer = from == rank_ ? to : from;
      }
      call.async_id = 0;
      const bool is_new = std::none_of(candidates_.begin(), candidates_.end(),
                                       [&](const Call& c) { return c.same_call(call) && c.peer == call.peer; });
      if (is_new) candidates_.push_back(call);
    }
  }
  return true;
}

void Trial::compare() {
  const Lanes mine = lanes_of(list_, rank_);
  for (const auto& [lane, calls] : mine) {
    const auto at = wanted_.find(lane);
    if (at == wanted_.end() || !meets(calls, at->second)) differs_.insert(lane);
  }
  for (const auto& [lane, calls] : wanted_) {
    if (!mine.contains(lane)) differs_.insert(lane);
  }
}

bool Trial::covers(const Call& a, const Call& b) const {
  const Lane of_a = lane_of(a, rank_);
  const Lane of_b = lane_of(b, rank_);
  return std::all_of(differs_.begin(), differs_.end(), [&](const Lane& lane) { return lane == of_a || lane == of_b; });
}

bool Trial::fits(const List& list) const {
  const Lanes lanes = lanes_of(list, rank_);
  if (lanes.size() != wanted_.size()) return false;
  for (const auto& [lane, calls] : lanes) {
    const auto at = wanted_.find(lane);
    if (at == wanted_.end() || !meets(calls, at->second)) return false;
  }
  return true;
}

// Comparing lanes is cheap and decides most; a replay finds what is left: the order between lanes.
bool Trial::try_list(List list) {
  if (!fits(list)) return false;
  CallLists edited = lists_;
  edited.ranks[static_cast<std::size_t>(rank_)] = std::move(list);
  return completes(edited);
}

bool Trial::try_delete() {
  for (std::size_t at = 0; at < list_.size(); ++at) {
    if (!communicates(list_[at]) || !covers(list_[at], list_[at])) continue;
    List list = list_;
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
    if (try_list(std::move(list))) return true;
  }
  return false;
}

bool Trial::try_swap() {
  for (std::size_t at = 0; at + 1 < list_.size(); ++at) {
    if (!communicates(list_[at]) || !communicates(list_[at + 1]) || !covers(list_[at], list_[at + 1])) continue;
    List list = list_;
    std::swap(list[at], list[at + 1]);
    if (try_list(std::move(list))) return true;
  }
  return false;
}

bool Trial::try_insert() {
  for (std::size_t at = 0; at <= list_.size(); ++at) {
    for (const Call& call : candidates_) {
      if (!covers(call, call)) continue;
      List list = list_;
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), call);
      if (try_list(std::move(list))) return true;
    }
  }
  return false;
}

bool Trial::try_replace() {
  for (std::size_t at = 0; at < list_.size(); ++at) {
    if (!communicates(list_[at])) continue;
    for (const Call& call : candidates_) {
      if (differs_.empty() || !covers(list_[at], call)) continue;
      List list = list_;
      list[at] = call;
      if (try_list(std::move(list))) return true;
    }
  }
  return false;
}

bool Trial::try_stop() {
  if (list_.empty() || list_.back().kind != OpKind::stop) return false;
  for (const auto& [lane, calls] : lanes_of(list_, rank_)) {
    const auto at = wanted_.find(lane);
    if (at == wanted_.end() || calls.size() > at->second.size()) return false;
    if (!meets(calls, List(at->second.begin(), at->second.begin() + static_cast<std::ptrdiff_t>(calls.size())))) {
      return false;
    }
  }
  return true;
}

bool Trial::can_be_put_right() {
  if (!others_agree()) return false;
  compare();
  if (try_stop()) return true;
  // An edit changes the number of calls by one at most, which rules out most kinds at once.
  std::ptrdiff_t excess = std::count_if(list_.begin(), list_.end(), communicates);
  for (const auto& [lane, calls] : wanted_) excess -= std::ssize(calls);
  switch (excess) {
    case 1: return try_delete();
    case 0: return try_swap() || try_replace();
    case -1: return try_insert();
    default: return false;
  }
}

}  // namespace

std::vector<RankId> single_edit_culprits(const CallLists& lists) {
  std::vector<RankId> culprits;
  if (completes(lists)) return culprits;
  std::vector<Lanes> lanes;
  lanes.reserve(lists.ranks.size());
  for (int rank = 0; rank < lists.world; ++rank) {
    lanes.push_back(lanes_of(lists.ranks[static_cast<std::size_t>(rank)], rank));
  }
  for (int rank = 0; rank < lists.world; ++rank) {
    if (Trial(lists, lanes, rank).can_be_put_right()) culprits.emplace_back(std::int64_t{rank});
  }
  return culprits;
}

}  // namespace ddx::testing
