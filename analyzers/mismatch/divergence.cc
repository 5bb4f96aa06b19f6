#include "analyzers/mismatch/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzers/log_view.h"
#include "analyzers/mismatch/divergence_text.h"

namespace ddx::analyzers {
namespace {

constexpr std::size_t kTail = 8192;           // calls looked at behind a difference
constexpr std::size_t kMostOrdered = 65'536;  // calls compared for their order
constexpr std::size_t kHistory = 4096;        // and before it

// What one side called: before the difference and from it on.
struct History {
  std::vector<std::uint64_t> before;
  std::vector<std::uint64_t> tail;
  const MemberView* member = nullptr;
  std::size_t at = 0;  // index of the first of `tail` among its calls
};

class GroupScan {
 public:
  GroupScan(const JobView& job, const CallKeys& keys, std::uint32_t group)
      : job_(job), keys_(keys), group_(job.groups[group]), group_index_(group) {}

  std::optional<Divergence> run() {
    for (const auto& [seq, members] : differing_calls()) {
      std::optional<Divergence> divergence = describe(seq, members);
      if (divergence) return divergence;
    }
    return std::nullopt;
  }

 private:
  // The sequence numbers of all calls, ascending. Not by counting up: those of hostile input may be far apart.
  std::vector<std::uint32_t> all_seqs() const {
    std::uint64_t first = UINT64_MAX, last = 0;
    std::size_t calls = 0;
    for (const MemberView& member : group_.members) {
      if (member.calls.empty()) continue;
      first = std::min<std::uint64_t>(first, member.calls.front().seq);
      last = std::max<std::uint64_t>(last, member.calls.back().seq);
      calls += member.calls.size();
    }
    std::vector<std::uint32_t> seqs;
    if (first > last) return seqs;
    if (last - first < calls + 1024) {
      for (std::uint64_t seq = first; seq <= last; ++seq) seqs.push_back(static_cast<std::uint32_t>(seq));
      return seqs;
    }
    std::set<std::uint32_t> sparse;
    for (const MemberView& member : group_.members) {
      for (const Call& call : member.calls) sparse.insert(call.seq);
    }
    return {sparse.begin(), sparse.end()};
  }

  // Visits each call once, however many members the group has: `visit(index into seqs, member, call)`.
  template <typename Visit>
  void for_each_call(const std::vector<std::uint32_t>& seqs, Visit visit) const {
    const bool dense = !seqs.empty() && seqs.back() - seqs.front() + std::size_t{1} == seqs.size();
    for (std::uint32_t i = 0; i < group_.members.size(); ++i) {
      for (const Call& call : group_.members[i].calls) {
        const auto at = dense ? static_cast<std::ptrdiff_t>(call.seq - seqs.front())
                              : std::lower_bound(seqs.begin(), seqs.end(), call.seq) - seqs.begin();
        visit(static_cast<std::size_t>(at), i, call);
      }
    }
  }

  struct CallsAt {
    std::uint32_t seq;
    std::vector<std::uint32_t> members;  // all that made a call with this number
  };

  // The sequence numbers at which calls are not all of one key, ascending.
  std::vector<CallsAt> differing_calls() const {
    const std::vector<std::uint32_t> seqs = all_seqs();
    constexpr std::uint32_t kNone = 0xffffffff;
    enum class Seen : std::uint8_t { nothing, one_key, several };
    std::vector<std::uint64_t> keys(seqs.size());
    std::vector<Seen> seen(seqs.size(), Seen::nothing);
    for_each_call(seqs, [&](std::size_t at, std::uint32_t i, const Call& call) {
      const std::uint64_t key = keys_.key(group_.members[i], call);
      if (seen[at] == Seen::nothing) {
        keys[at] = key;
        seen[at] = Seen::one_key;
      } else if (keys[at] != key) {
        seen[at] = Seen::several;
      }
    });
    std::vector<CallsAt> differing;
    std::vector<std::uint32_t> place(seqs.size(), kNone);
    for (std::size_t at = 0; at < seqs.size(); ++at) {
      if (seen[at] != Seen::several) continue;
      place[at] = static_cast<std::uint32_t>(differing.size());
      differing.push_back({seqs[at], {}});
    }
    if (differing.empty()) return differing;
    for_each_call(seqs, [&](std::size_t at, std::uint32_t i, const Call&) {
      if (place[at] != kNone) differing[place[at]].members.push_back(i);
    });
    return differing;
  }

  // Absent: the calls may differ by right.
  std::optional<Divergence> describe(std::uint32_t seq, const std::vector<std::uint32_t>& members) {
    Divergence d;
    d.group = group_index_;
    d.seq = seq;
    d.end = end_of(seq, members);
    if (d.end != CallsEnd::open && uneven_by_right(seq, members)) return std::nullopt;
    d.sides = sides_at(seq, members);
    if (d.sides.size() < 2) return std::nullopt;
    std::size_t voices = 0;  // a call that is on no side has none
    for (const auto& side : d.sides) voices += side.size();
    d.has_majority = 2 * d.sides[0].size() > voices;
    if (may_be_uneven(d)) return std::nullopt;
    if (over_by_time_out(seq, members)) d.timed_out = ranks_that_timed_out(*job_.evidence);
    classify(d);
    return d;
  }

  // Members with calls that certainly agree share a key. Keys that differ in nothing that both recorded may be one
  // side; that is not transitive: a call whose size was not recorded agrees with 10 and with 20. So all calls of a side
  // agree with each other, and a call that would fit several sides is on none.
  std::vector<std::vector<std::uint32_t>> sides_at(std::uint32_t seq, const std::vector<std::uint32_t>& members) const {
    std::map<std::uint64_t, std::vector<std::uint32_t>> by_key;
    for (const std::uint32_t i : members) {
      by_key[keys_.key(group_.members[i], *group_.members[i].call_at(seq))].push_back(i);
    }
    std::vector<std::vector<std::uint32_t>> same_key;
    for (auto& [key, alike] : by_key) same_key.push_back(std::move(alike));
    std::vector<std::vector<std::uint32_t>> sides = merged(seq, std::move(same_key));
    for (auto& side : sides) std::sort(side.begin(), side.end());
    std::sort(sides.begin(), sides.end(), [](const auto& a, const auto& b) {
      return a.size() != b.size() ? a.size() > b.size() : a.front() < b.front();
    });
    return sides;
  }

  // The parts, those that may agree put together. Those that agree with fewest others come first: they make the sides.
  std::vector<std::vector<std::uint32_t>> merged(std::uint32_t seq,
                                                 std::vector<std::vector<std::uint32_t>> parts) const {
    constexpr std::size_t kMostCompared = 64;  // of more parts each is a side of its own
    if (parts.size() > kMostCompared) return parts;
    const auto agree = [&](const auto& a, const auto& b) {
      return difference_at(seq, a.front(), b.front()) == Field::none;
    };
    std::vector<std::pair<std::size_t, std::size_t>> order;  // (how many it agrees with, index)
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto fits =
          std::count_if(parts.begin(), parts.end(), [&](const auto& other) { return agree(parts[i], other); });
      order.emplace_back(static_cast<std::size_t>(fits), i);
    }
    std::sort(order.begin(), order.end());
    std::vector<std::vector<std::size_t>> sides;  // of parts
    for (const auto& [fits, i] : order) {
      std::vector<std::size_t> fitting;
      for (std::size_t side = 0; side < sides.size(); ++side) {
        if (std::all_of(sides[side].begin(), sides[side].end(),
                        [&, part = i](std::size_t other) { return agree(parts[part], parts[other]); })) {
          fitting.push_back(side);
        }
      }
      if (fitting.empty()) sides.push_back({i});
      if (fitting.size() == 1) sides[fitting.front()].push_back(i);
    }
    std::vector<std::vector<std::uint32_t>> members;
    for (const auto& side : sides) {
      std::vector<std::uint32_t>& all = members.emplace_back();
      for (const std::size_t i : side) all.insert(all.end(), parts[i].begin(), parts[i].end());
    }
    return members;
  }

  // An all_to_all whose parts may be uneven by right: without split lists only a call that did not end, and in which
  // most ranks look alike, says that one size is wrong.
  bool may_be_uneven(const Divergence& d) const {
    const MemberView& member = group_.members[d.sides[0].front()];
    const OpKind kind = job_.trace->signature(member.program->signature(member.call_at(d.seq)->row)).kind;
    if (kind != OpKind::all_to_all || (d.end == CallsEnd::open && d.has_majority)) return false;
    const auto [reference, odd] = speakers(d);
    return difference_at(d.seq, reference, odd) == Field::count;
  }

  // Exchanges of one datatype that are over: of these only the sizes can differ, and they may.
  bool uneven_by_right(std::uint32_t seq, const std::vector<std::uint32_t>& members) const {
    const auto signature = [&](std::uint32_t i) -> const Signature& {
      const MemberView& member = group_.members[i];
      return job_.trace->signature(member.program->signature(member.call_at(seq)->row));
    };
    const DataType type = signature(members.front()).type_in;
    return std::all_of(members.begin(), members.end(), [&](std::uint32_t i) {
      return signature(i).kind == OpKind::all_to_all && signature(i).type_in == type;
    });
  }

  Field difference_at(std::uint32_t seq, std::uint32_t a, std::uint32_t b) const {
    const MemberView& one = group_.members[a];
    const MemberView& other = group_.members[b];
    return first_difference(job_, one, *one.call_at(seq), other, *other.call_at(seq));
  }

  // Members of the first two sides whose calls differ, those that show most of what came next before others.
  std::pair<std::uint32_t, std::uint32_t> speakers(const Divergence& d) const {
    const std::uint32_t reference = speaker(d.sides[0]), odd = speaker(d.sides[1]);
    if (difference_at(d.seq, reference, odd) != Field::none) return {reference, odd};
    for (const std::uint32_t other : d.sides[1]) {
      if (difference_at(d.seq, reference, other) != Field::none) return {reference, other};
    }
    for (const std::uint32_t other : d.sides[0]) {
      for (const std::uint32_t one : d.sides[1]) {
        if (difference_at(d.seq, other, one) != Field::none) return {other, one};
      }
    }
    return {reference, odd};
  }

  // The member of a side that shows most of what came next.
  std::uint32_t speaker(const std::vector<std::uint32_t>& side) const {
    return *std::max_element(side.begin(), side.end(), [&](std::uint32_t a, std::uint32_t b) {
      return group_.members[a].calls.back().seq < group_.members[b].calls.back().seq;
    });
  }

  History history_of(std::uint32_t index, std::uint32_t seq) const {
    const MemberView& member = group_.members[index];
    const auto at = static_cast<std::size_t>(member.call_at(seq) - member.calls.data());
    const std::size_t begin = at > kHistory ? at - kHistory : 0;
    return {keys_.keys(member, begin, at - begin), keys_.keys(member, at, kTail), &member, at};
  }

  // All calls to the end of a whole program; none where they are not all known, or too many to be compared.
  std::vector<std::uint64_t> all_from(std::uint32_t index, std::uint32_t seq) const {
    const MemberView& member = group_.members[index];
    const auto at = static_cast<std::size_t>(member.call_at(seq) - member.calls.data());
    const std::size_t left = member.calls.size() - at;
    const bool all = member.record->whole_program && !member.record->tail_lost && member.in_all == member.calls.size();
    return all && left <= kMostOrdered ? keys_.keys(member, at, left) : std::vector<std::uint64_t>();
  }

  void classify(Divergence& d);
  std::string code_of(Divergence& d, const History& odd, const History& reference) const;
  std::string code_without_support(Divergence& d, const History& odd, const History& reference) const;
  bool from_elsewhere(const History& history, const Pattern& pattern) const;
  bool leaves_pattern(const History& leaver, const History& stayer) const;
  bool unique_to(const std::vector<std::uint32_t>& side, std::uint32_t seq, std::size_t length) const;
  bool alone(const Divergence& d) const;
  bool sizes_far_apart(const Divergence& d) const;
  CallsEnd end_of(std::uint32_t seq, const std::vector<std::uint32_t>& members) const;
  bool over_by_time_out(std::uint32_t seq, const std::vector<std::uint32_t>& members) const;

  const JobView& job_;
  const CallKeys& keys_;
  const GroupView& group_;
  std::uint32_t group_index_;
};

std::string mismatch_code(Field field) {
  switch (field) {
    case Field::group_members: return "group-create";
    case Field::count: return "mismatch-size";
    case Field::datatype: return "mismatch-dtype";
    case Field::root: return "mismatch-root";
    case Field::redop: return "mismatch-redop";
    case Field::kind:
    case Field::none: break;
  }
  return "mismatch-type";
}

// A call like that of the rounds before, which all made it at one place in the code, and this one at another.
bool GroupScan::from_elsewhere(const History& history, const Pattern& pattern) const {
  constexpr std::size_t kRounds = 8;
  const auto site = [&](std::size_t rounds_back) {
    const Call& call = history.member->calls[history.at - rounds_back * pattern.period];
    return call_site_text(job_, *history.member, call.row);
  };
  const std::string now = site(0), before = site(1);
  if (now.empty() || before.empty() || now == before) return false;
  for (std::size_t round = 2; round <= std::min(pattern.repeats, kRounds); ++round) {
    if (site(round) != before) return false;
  }
  return true;
}

// `leaver` goes on to a call that is no part of the repeating pattern before it, while `stayer` goes round once more.
bool GroupScan::leaves_pattern(const History& leaver, const History& stayer) const {
  const Pattern pattern = pattern_before(stayer.before);
  if (pattern.period == 0) return false;
  const auto round = std::span(stayer.before).last(pattern.period);
  const bool stays = stayer.tail.front() == round.front() && !from_elsewhere(stayer, pattern);
  return stays && std::find(round.begin(), round.end(), leaver.tail.front()) == round.end();
}

// No member outside `side` makes any of the `length` calls from `seq` on that the side makes.
bool GroupScan::unique_to(const std::vector<std::uint32_t>& side, std::uint32_t seq, std::size_t length) const {
  const MemberView& member = group_.members[side.front()];
  const auto at = static_cast<std::size_t>(member.call_at(seq) - member.calls.data());
  const std::vector<std::uint64_t> calls = keys_.keys(member, at, length);
  for (std::uint32_t i = 0; i < group_.members.size(); ++i) {
    if (std::binary_search(side.begin(), side.end(), i)) continue;
    for (const Call& call : group_.members[i].calls) {
      if (std::find(calls.begin(), calls.end(), keys_.key(group_.members[i], call)) != calls.end()) return false;
    }
  }
  return true;
}

// One rank against a majority, or rank 0, for which programs branch. Of two ranks nobody can say which one is odd.
bool GroupScan::alone(const Divergence& d) const {
  const auto& side = d.sides[1];
  return side.size() == 1 && (d.has_majority || group_.members[side.front()].rank == RankId(0));
}

// A short last batch gives sizes that are close; another call of the same kind gives any size.
bool GroupScan::sizes_far_apart(const Divergence& d) const {
  std::optional<std::uint64_t> counts[2];
  for (int i = 0; i < 2; ++i) {
    const MemberView& member = group_.members[d.sides[static_cast<std::size_t>(i)].front()];
    counts[i] = shared_count(job_.trace->signature(member.program->signature(member.call_at(d.seq)->row)));
  }
  if (!counts[0] || !counts[1]) return false;
  const auto [low, high] = std::minmax(*counts[0], *counts[1]);
  return high / 2 > low;
}

CallsEnd GroupScan::end_of(std::uint32_t seq, const std::vector<std::uint32_t>& members) const {
  CallsEnd end = CallsEnd::completed;
  for (const std::uint32_t i : members) {
    const MemberView& member = group_.members[i];
    if (!member.record->snapshot || !member.completed(*member.call_at(seq))) return CallsEnd::open;
    if (only_tells_over(*member.record)) end = CallsEnd::over;
  }
  return end;
}

bool GroupScan::over_by_time_out(std::uint32_t seq, const std::vector<std::uint32_t>& members) const {
  return std::any_of(members.begin(), members.end(), [&](std::uint32_t i) {
    const MemberView& member = group_.members[i];
    return only_tells_over(*member.record) && member.completed(*member.call_at(seq));
  });
}

// How often `next` came right after `call`.
struct Succession {
  std::size_t seen = 0, followed = 0;
  // A size that changes once may do so by a fault of its own; so one round is enough only where kinds differ.
  bool usual(bool same_kind) const { return followed >= (same_kind ? 2u : 1u) && 2 * followed > seen; }
};

Succession succession(const std::vector<std::uint64_t>& history, std::uint64_t call, std::uint64_t next) {
  Succession found;
  for (std::size_t i = 0; i + 1 < history.size(); ++i) {
    if (history[i] != call) continue;
    ++found.seen;
    if (history[i + 1] == next) ++found.followed;
  }
  return found;
}

// Nothing came behind the difference: the calls before it must decide.
std::string GroupScan::code_without_support(Divergence& d, const History& odd, const History& reference) const {
  const bool same_kind = d.field != Field::kind;
  if (leaves_pattern(odd, reference) && (!same_kind || (d.field == Field::count && sizes_far_apart(d)))) {
    const bool rank_zero =
        d.has_majority && d.sides[1].size() == 1 && group_.members[d.sides[1].front()].rank == RankId(0);
    return rank_zero && !same_kind && unique_to(d.sides[1], d.seq, 1) ? "rank0-only" : "uneven-steps";
  }
  if (!same_kind && leaves_pattern(reference, odd)) return "uneven-steps";
  // Earlier rounds show what comes after the call that one side lacks.
  const std::uint64_t usual = reference.tail.front(), own = odd.tail.front();
  if (usual != own && succession(reference.before, usual, own).usual(same_kind)) {
    d.edit = {Edit::Kind::skip, 1, 0};
    return "rank-skipped";
  }
  if (usual != own && succession(reference.before, own, usual).usual(same_kind)) {
    d.edit = {Edit::Kind::extra, 1, 0};
    return "rank-skipped";
  }
  if (same_kind) return mismatch_code(d.field);
  const auto& side = d.sides[1];
  if (side.size() == 1 && group_.members[side.front()].rank == RankId(0) && unique_to(side, d.seq, 1))
    return "rank0-only";
  return "mismatch-type";
}

std::string GroupScan::code_of(Divergence& d, const History& odd, const History& reference) const {
  const MemberView& member = group_.members[d.sides[1].front()];
  const OpKind kind = job_.trace->signature(member.program->signature(member.call_at(d.seq)->row)).kind;
  if (kind == OpKind::new_group || kind == OpKind::split_group || d.field == Field::group_members)
    return "group-create";
  if (d.edit.support == 0) return code_without_support(d, odd, reference);
  // Lists that differ from their first common call on: where the shift began is not retained.
  const bool beginning_lost = odd.before.empty() && reference.before.empty() && member.record->head_lost;
  switch (d.edit.kind) {
    case Edit::Kind::skip:
      if (leaves_pattern(odd, reference)) return "uneven-steps";
      return beginning_lost ? "shifted" : "rank-skipped";
    case Edit::Kind::extra:
      if (alone(d) && unique_to(d.sides[1], d.seq, d.edit.length)) return "rank0-only";
      if (leaves_pattern(reference, odd)) return "uneven-steps";
      return beginning_lost ? "shifted" : "rank-skipped";
    case Edit::Kind::swap:
    case Edit::Kind::reorder: return "order-inverted";
    case Edit::Kind::replace:
    case Edit::Kind::none: break;
  }
  return mismatch_code(d.field);
}

void GroupScan::classify(Divergence& d) {
  auto [reference_index, odd_index] = speakers(d);
  History reference = history_of(reference_index, d.seq);
  History odd = history_of(odd_index, d.seq);
  d.edit = explain_difference(odd.tail, reference.tail);
  if (d.edit.kind != Edit::Kind::swap && d.edit.kind != Edit::Kind::replace) {
    const Edit order = explain_order(all_from(odd_index, d.seq), all_from(reference_index, d.seq));
    if (order.kind != Edit::Kind::none) d.edit = order;
  }
  if (!d.has_majority && d.edit.kind == Edit::Kind::skip) {
    // Two equal sides: "one has a call more" and "the other one less" are the same sentence; tell it of the side that
    // makes the call, since that call can be shown.
    std::swap(d.sides[0], d.sides[1]);
    std::swap(reference, odd);
    std::swap(reference_index, odd_index);
    d.edit.kind = Edit::Kind::extra;
  }
  d.field = difference_at(d.seq, reference_index, odd_index);
  d.code = code_of(d, odd, reference);
  if (!d.has_majority && d.edit.kind == Edit::Kind::skip) {
    std::swap(d.sides[0], d.sides[1]);
    std::swap(reference_index, odd_index);
    d.edit.kind = Edit::Kind::extra;
  }
  std::vector<RankId> ranks;
  const bool one_side = d.has_majority || d.code == "rank0-only";
  const std::size_t last = d.code == "rank0-only" ? 2 : d.sides.size();
  for (std::size_t side = one_side ? 1 : 0; side < last; ++side) {
    for (std::uint32_t index : d.sides[side]) ranks.push_back(group_.members[index].rank);
  }
  d.culprits = RankSet(std::move(ranks));
  d.finding = divergence_finding(job_, d, odd_index, reference_index);
}

}  // namespace

std::vector<Divergence> find_divergences(const JobView& job, const CallKeys& keys) {
  std::vector<Divergence> all;
  for (std::uint32_t group = 0; group < job.groups.size(); ++group) {
    if (auto divergence = GroupScan(job, keys, group).run()) all.push_back(std::move(*divergence));
  }
  return all;
}

}  // namespace ddx::analyzers
