#include "analyzers/deadlock/cycle.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzers/deadlock/pattern_break.h"
#include "analyzers/deadlock/wait_text.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

bool is_world(const GroupView& group) {
  return group.label == "default_pg" || group.label == "pg0" || (!group.name.empty() && is_default_group(group.name));
}

class CycleJudge {
 public:
  CycleJudge(const JobView& job, const CallKeys& keys, const WaitGraph& graph, const std::vector<std::uint32_t>& set)
      : job_(job), keys_(keys), graph_(graph), set_(set), core_(ranks_of(graph, set)) {
    for (std::uint32_t rank : set_) {
      for (std::uint32_t i : graph_.waits_in[rank]) {
        if (inside(i)) instances_.insert(i);
      }
    }
    for (std::uint32_t i : instances_) {
      (graph_.instances[i].p2p ? p2p_ : collectives_)++;
      groups_.insert(graph_.instances[i].group);
    }
  }

  Finding judge() {
    Finding f;
    std::uint32_t start = set_.front();
    const std::vector<std::uint32_t> shared = on_every_cycle(graph_, set_);
    if (set_.size() == 1 && collectives_ == 0) {
      f = waits_for_itself();
    } else if (collectives_ == 0 && (groups_.size() == 1 || !reorder_would_help())) {
      f = p2p_cycle();
    } else if (const auto odd = odd_by_count()) {
      start = graph_.index_of(odd->rank);
      f = odd_count(*odd);
    } else if (const RankSet absent = never_called(); !absent.empty() && absent.size() < core_.size()) {
      f = left_out(absent);
    } else if (auto broken = by_own_steps(shared)) {
      start = graph_.index_of(*broken->ranks.begin());
      f = std::move(*broken);
    } else if (shared.size() == 1) {
      start = shared.front();
      f = one_culprit(shared.front());
    } else if (const auto outvoted = odd_by_order()) {
      start = *outvoted;
      f = one_culprit(*outvoted);
    } else if (const auto breaker = lone_breaker(shared)) {
      start = *breaker;
      f = one_culprit(*breaker);
      f.confidence = Confidence::medium;
      f.explanation +=
          "Of those who could be at fault it is the only one whose own earlier steps went on differently.\n";
    } else {
      f = orders_differ();
    }
    add_circle(f, start);
    f.victims = victims_of(graph_, f.ranks).without(f.ranks);
    return f;
  }

 private:
  bool inside(std::uint32_t instance) const {
    const auto& missing = graph_.instances[instance].missing;
    return std::any_of(missing.begin(), missing.end(),
                       [&](std::uint32_t rank) { return std::binary_search(set_.begin(), set_.end(), rank); });
  }

  // The call that `instance` waits for is further down in the program of `rank` (known for whole programs only).
  bool planned(std::uint32_t instance, RankId rank) const {
    const Instance& wait = graph_.instances[instance];
    const MemberView* member = job_.groups[wait.group].member_of(rank);
    if (!member || !member->record) return false;
    if (!wait.p2p) return member->call_at(wait.seq) != nullptr;
    if (!wait.partner_sends || wait.partner_queued) return true;  // both sides are posted, only behind something else
    const OpKind wanted = *wait.partner_sends ? OpKind::send : OpKind::recv;
    const auto waiter_position = static_cast<std::int32_t>(job_.groups[wait.group].members[wait.member].position);
    for (std::size_t i = member->p2p_issued; i < member->p2p.size(); ++i) {
      const Signature& s = job_.trace->signature(member->program->signature(member->p2p[i]));
      if (s.kind == wanted && job_.trace->peer(*member->record, s) == waiter_position) return true;
    }
    return false;
  }

  bool whole_programs() const {
    return std::all_of(core_.begin(), core_.end(), [&](RankId rank) {
      const RankView* view = job_.view_of(rank);
      return view && view->record && view->record->whole_program;
    });
  }

  bool reorder_would_help() const {
    if (!whole_programs()) return true;
    return std::all_of(instances_.begin(), instances_.end(), [&](std::uint32_t i) {
      const auto& missing = graph_.instances[i].missing;
      return std::all_of(missing.begin(), missing.end(),
                         [&](std::uint32_t rank) { return planned(i, graph_.ranks[rank]); });
    });
  }

  // Of whole programs: ranks that are waited for in a call that their program does not hold at all.
  RankSet never_called() const {
    RankSet ranks;
    if (!whole_programs()) return ranks;
    for (std::uint32_t i : instances_) {
      for (std::uint32_t rank : graph_.instances[i].missing) {
        if (!planned(i, graph_.ranks[rank])) ranks.insert(graph_.ranks[rank]);
      }
    }
    return ranks;
  }

  // A rank whose whole program has another number of calls in a group than all other members have.
  struct OddCount {
    RankId rank;
    const GroupView* group;
    std::uint64_t calls, usual;
  };

  std::optional<OddCount> odd_by_count() const {
    if (!whole_programs()) return std::nullopt;
    std::optional<OddCount> found;
    for (const std::uint32_t index : groups_of_core()) {
      const auto odd = odd_member(job_.groups[index]);
      if (!odd) continue;
      if (found && found->rank != odd->rank) return std::nullopt;
      if (core_.contains(odd->rank)) found = odd;
    }
    if (!found || found->calls > 0) return found;
    // Not one call in the group: it never joined it, which is the more telling story.
    const Instance* missed = awaited_in(graph_.index_of(found->rank));
    return missed && is_creation(*missed, found->rank) ? std::nullopt : found;
  }

  std::set<std::uint32_t> groups_of_core() const {
    std::set<std::uint32_t> groups;
    for (const RankId rank : core_) {
      for (const RankView::Place& place : job_.view_of(rank)->by_slot) {
        if (place.group != RankView::kNoGroup) groups.insert(place.group);
      }
    }
    return groups;
  }

  static std::optional<OddCount> odd_member(const GroupView& group) {
    std::map<std::uint64_t, std::vector<const MemberView*>> by_count;
    for (const MemberView& member : group.members) {
      if (member.record) by_count[member.in_all].push_back(&member);
    }
    if (by_count.size() != 2) return std::nullopt;
    const auto& [few, few_members] = *by_count.begin();
    const auto& [many, many_members] = *by_count.rbegin();
    if (few_members.size() == 1 && many_members.size() > 1) return OddCount{few_members[0]->rank, &group, few, many};
    if (many_members.size() == 1 && few_members.size() > 1) return OddCount{many_members[0]->rank, &group, many, few};
    return std::nullopt;
  }

  Finding odd_count(const OddCount& odd) const {
    Finding f = blank("rank-skipped", RankSet{odd.rank});
    f.confidence = Confidence::high;
    const bool fewer = odd.calls < odd.usual;
    const std::uint64_t by = fewer ? odd.usual - odd.calls : odd.calls - odd.usual;
    f.summary = fmt::format("rank {} makes {} call{} {} than the other members of group {}", odd.rank.value, by,
                            by == 1 ? "" : "s", fewer ? "less" : "more", odd.group->label);
    f.explanation = fmt::format(
        "Over its whole program rank {} makes {} call{} in group {}, every other member {}; equal calls "
        "around it hide where.\n",
        odd.rank.value, odd.calls, odd.calls == 1 ? "" : "s", odd.group->label, odd.usual);
    f.advice = "Look for a branch, an early return or an exception handler that only this rank takes.";
    return f;
  }

  // Where in a member's program the call that `wait` is about stands, issued or planned.
  static std::optional<std::uint32_t> row_of(const Instance& wait, const MemberView* member) {
    const Call* call = !wait.p2p && member && member->record ? member->call_at(wait.seq) : nullptr;
    return call ? std::optional(call->row) : std::nullopt;
  }

  // How many ranks make the call of one operation before that of another, and how many after it.
  struct Order {
    std::size_t before = 0, after = 0;
  };

  // Whether `member` (of the first one's group) makes the first before the second; nullopt: not both.
  std::optional<bool> makes_before(const Instance& first, const Instance& second, const MemberView& member) const {
    const auto row_first = row_of(first, &member);
    const auto row_second = row_of(second, job_.groups[second.group].member_of(member.rank));
    return row_first && row_second ? std::optional(*row_first < *row_second) : std::nullopt;
  }

  Order order_of_all(const Instance& first, const Instance& second) const {
    Order order;
    for (const MemberView& member : job_.groups[first.group].members) {
      if (const auto before = makes_before(first, second, member)) ++(*before ? order.before : order.after);
    }
    return order;
  }

  // The only rank on the circle that makes its two calls in another order than all others who make both.
  std::optional<std::uint32_t> odd_by_order() const {
    std::optional<std::uint32_t> odd;
    std::map<std::pair<const Instance*, const Instance*>, Order> orders;  // many ranks share their two calls
    for (std::uint32_t rank : set_) {
      const Instance* own = own_wait(rank);
      const Instance* missed = awaited_in(rank);
      if (!own || !missed) return std::nullopt;
      const auto [at, fresh] = orders.try_emplace({own, missed});
      if (fresh) at->second = order_of_all(*own, *missed);
      Order others = at->second;
      const MemberView* self = job_.groups[own->group].member_of(graph_.ranks[rank]);
      const auto self_before = self ? makes_before(*own, *missed, *self) : std::nullopt;
      if (self_before) --(*self_before ? others.before : others.after);
      if (others.after < 2 || others.after <= others.before) continue;
      if (odd) return std::nullopt;
      odd = rank;
    }
    return odd;
  }

  // An operation of the circle in which somebody waits for `rank`.
  const Instance* awaited_in(std::uint32_t rank) const {
    const Instance* best = nullptr;
    for (std::uint32_t i : instances_) {
      const Instance& instance = graph_.instances[i];
      if (std::find(instance.missing.begin(), instance.missing.end(), rank) == instance.missing.end()) continue;
      if (!best || instance.waiters.size() > best->waiters.size()) best = &instance;
    }
    return best;
  }

  const Instance* own_wait(std::uint32_t rank) const {
    for (std::uint32_t i : graph_.waits_in[rank]) {
      if (instances_.contains(i)) return &graph_.instances[i];
    }
    return nullptr;
  }

  // The group's very first collective, and `rank` has made none there: it did not take part in making the group.
  bool is_creation(const Instance& wait, RankId rank) const {
    if (wait.p2p) return false;
    const GroupView& group = job_.groups[wait.group];
    const MemberView& waiter = group.members[wait.member];
    const OpKind kind = job_.trace->signature(waiter.program->signature(wait.row)).kind;
    if (kind == OpKind::new_group) return true;
    const MemberView* member = group.member_of(rank);
    const bool first = waiter.calls.front().seq == wait.seq && !waiter.record->head_lost && wait.seq <= 1;
    if (!first || !member || member->last_enqueued.value_or(0) != 0) return false;
    return own_is_default(rank) || !(is_world(group) || group.ranks() == job_.known);
  }

  bool own_is_default(RankId rank) const {
    const Instance* own = own_wait(graph_.index_of(rank));
    return own && is_world(job_.groups[own->group]);
  }

  Finding one_culprit(std::uint32_t rank) const {
    const RankId culprit = graph_.ranks[rank];
    const Instance& missed = *awaited_in(rank);
    const Instance* own = own_wait(rank);
    Finding f = blank("order-cross-group", RankSet{culprit});
    f.confidence = missed.waiters.size() > 1 ? Confidence::high : Confidence::medium;
    const std::string missed_call = call_text(missed);
    const std::string own_call = own ? call_text(*own) : "another operation";
    if (is_creation(missed, culprit)) {
      f.code = "group-create";
      f.summary = fmt::format("rank {} did not join the first operation of group {} ({}): it is in {}", culprit.value,
                              job_.groups[missed.group].label, missed_call, own_call);
      f.advice =
          "Whether to create or use a group must be decided alike by all its members: decide it collectively, and "
          "create groups on all ranks in one order.";
      return f;
    }
    if (missed.p2p && !whole_programs()) {
      f.code = "p2p-unmatched";
      const bool alone = alone_in_its_call(own);
      if (!alone) f.ranks.insert(ranks_of(graph_, missed.waiters));
      f.summary =
          fmt::format("rank {} is in {} and has not posted the {} that meets {}: {} for it", culprit.value, own_call,
                      wanted_in(missed), missed_call, waits(ranks_of(graph_, missed.waiters).label(8)));
      f.explanation =
          alone ? fmt::format("No other member is in that call: rank {} left the {} out, or makes a call too many.\n",
                              culprit.value, wanted_in(missed))
                : fmt::format(
                      "Either rank {} left that {} out, or it would come later, or the call that waits for it "
                      "is one too many.\n",
                      culprit.value, wanted_in(missed));
      f.advice = "Compare the two call sites: do both sides count the same number of sends and receives?";
      return f;
    }
    if (alone_in_unique_call(rank, culprit)) {
      f.code = "rank0-only";
      f.summary = fmt::format("only rank {} makes {}; the others are in {}", culprit.value, own_call, missed_call);
      f.advice =
          "Look for a collective under a rank test (saving, logging, evaluating), perhaps hidden in a property or "
          "forward.";
      return f;
    }
    if (groups_.size() == 1) f.code = "rank-skipped";
    f.summary =
        groups_.size() == 1
            ? fmt::format("rank {} is in {} while the others wait for it in {}", culprit.value, own_call, missed_call)
            : fmt::format("rank {} uses its groups in another order: it is in {} while the others wait for it in {}",
                          culprit.value, own_call, missed_call);
    f.explanation = fmt::format(
        "Every circle of waits goes through rank {}: with it in {} nobody would wait. It either swapped "
        "the two operations or left one out.\n",
        culprit.value, missed_call);
    f.advice =
        "Issue the operations of all groups in one order on all ranks; look for a branch that only this rank takes.";
    return f;
  }

  // In a collective of three or more in which it has no company: of the two sides it is the odd one.
  bool alone_in_its_call(const Instance* own) const {
    return own && !own->p2p && own->waiters.size() == 1 && job_.groups[own->group].members.size() > 2;
  }

  // Rank 0 alone in a call that nobody ever makes besides.
  bool alone_in_unique_call(std::uint32_t rank, RankId culprit) const {
    const Instance* own = own_wait(rank);
    if (!own || own->p2p || own->waiters.size() != 1 || culprit != RankId(0)) return false;
    const GroupView& group = job_.groups[own->group];
    const MemberView& member = group.members[own->member];
    if (group.members.size() < 3) return false;
    const std::uint64_t key = keys_.key(member, *member.call_at(own->seq));
    for (const MemberView& other : group.members) {
      if (other.rank == culprit) continue;
      for (const Call& call : other.calls) {
        if (keys_.key(other, call) == key) return false;
      }
    }
    return true;
  }

  // Ranks of the circle whose own earlier steps went on differently, where the others' went on like this.
  struct Breakers {
    RankSet ranks;
    PatternBreak first;  // of the first of them
  };

  std::optional<Breakers> pattern_breakers(const RankSet& asked) const {
    constexpr std::size_t kMostAsked = 64;
    if (asked.size() > kMostAsked) return std::nullopt;
    Breakers found;
    bool alike = true;
    for (const RankId rank : asked) {
      const RankView* view = job_.view_of(rank);
      const auto broken = view ? find_pattern_break(job_, *view) : std::nullopt;
      if (!broken) return std::nullopt;
      if (broken->kind == PatternBreak::Kind::none) continue;
      if (found.ranks.empty()) found.first = *broken;
      alike = alike && broken->kind == found.first.kind;
      found.ranks.insert(rank);
    }
    if (found.ranks.empty() || found.ranks.size() == asked.size()) return std::nullopt;
    if (!alike) found.first.kind = PatternBreak::Kind::other;
    return found;
  }

  // Of several whose other behaviour would free all the one that did something new.
  std::optional<std::uint32_t> lone_breaker(const std::vector<std::uint32_t>& suspects) const {
    if (suspects.size() < 2 || suspects.size() > 8) return std::nullopt;
    const auto breakers = pattern_breakers(ranks_of(graph_, suspects));
    return breakers && breakers->ranks.size() == 1 ? std::optional(graph_.index_of(*breakers->ranks.begin()))
                                                   : std::nullopt;
  }

  // Ranks that made a call like the one in `row` of `view`, in whatever group.
  RankSet ranks_with_call_of(const RankView& view, std::uint32_t row) const {
    const SignatureId wanted = job_.trace->program(*view.record).signature(row);
    RankSet made;
    for (const RankView& other : job_.ranks) {
      const Program& program = job_.trace->program(*other.record);
      for (std::size_t i = program.size(); i-- > 0;) {
        if (program.signature(i) != wanted || program.state(i) == OpState::planned) continue;
        made.insert(other.rank);
        break;
      }
    }
    return made;
  }

  // Dumps of ranks that wait in a circle of collectives: what each did before may tell who did something new. Of whole
  // programs everything is known without that.
  std::optional<Finding> by_own_steps(const std::vector<std::uint32_t>& shared) const {
    if (p2p_ > 0 || whole_programs()) return std::nullopt;
    const auto breakers = pattern_breakers(core_);
    if (!breakers) return std::nullopt;
    if (shared.size() == 1 && !(breakers->ranks == RankSet{graph_.ranks[shared.front()]})) return std::nullopt;
    const RankId first = *breakers->ranks.begin();
    const RankView& view = *job_.view_of(first);
    if (breakers->first.kind == PatternBreak::Kind::foreign) {
      const RankSet made = ranks_with_call_of(view, breakers->first.row);
      const RankSet others = job_.seen.without(made);
      if (made == breakers->ranks && made.size() <= others.size()) return broke_pattern(*breakers);
      const RankSet behind = core_.without(made);
      if (behind.empty() || others.size() >= made.size()) return std::nullopt;
      return went_round_again(view, breakers->first, made, behind);
    }
    const Instance* own = own_wait(graph_.index_of(first));
    const bool with_most = own && own->waiters.size() * 2 > job_.groups[own->group].members.size();
    if (breakers->first.kind == PatternBreak::Kind::other && with_most) return std::nullopt;
    return broke_pattern(*breakers);
  }

  // Most have left the pattern together: who goes round once more is the odd one.
  Finding went_round_again(const RankView& view, const PatternBreak& broken, const RankSet& made,
                           const RankSet& behind) const {
    Finding f = blank("uneven-steps", behind);
    f.confidence = Confidence::low;
    f.summary = fmt::format("{} {} round once more, where {} went on to {}", behind.label(8),
                            behind.size() == 1 ? "goes" : "go", made.label(8), row_text(view, broken.row));
    f.explanation =
        fmt::format("That call is new to all who made it, and {} of {} ranks did.\n", made.size(), job_.seen.size());
    f.advice = "All ranks must take the same number of steps: agree on it before the loop, pad, or use join().";
    return f;
  }

  // "all_reduce f32 x 64 (group tp)" of a row of `view`.
  std::string row_text(const RankView& view, std::uint32_t row) const {
    const auto [group, member] = place_of(view, row);
    return fmt::format("{} (group {})", describe_call(job_, *member, row), group->label);
  }

  std::pair<const GroupView*, const MemberView*> place_of(const RankView& view, std::uint32_t row) const {
    const RankView::Place place = view.by_slot[*job_.trace->program(*view.record).comm_slot(row)];
    const GroupView& group = job_.groups[place.group];
    return {&group, &group.members[place.member]};
  }

  Finding broke_pattern(const Breakers& breakers) const {
    const PatternBreak& broken = breakers.first;
    const RankView& view = *job_.view_of(*breakers.ranks.begin());
    const std::string who = breakers.ranks.label(8), others = core_.without(breakers.ranks).label(8);
    const std::string own = row_text(view, broken.row), due = row_text(view, broken.due);
    Finding f = blank("order-cross-group", breakers.ranks);
    f.confidence = Confidence::medium;
    f.summary = fmt::format("{} went on to {} where earlier steps had {}: swapped, or left out", who, own, due);
    f.advice =
        "Issue the operations of all groups in one order on all ranks, and look for a branch that others do not take.";
    if (broken.kind == PatternBreak::Kind::skip) {
      f.code = "rank-skipped";
      f.summary = broken.length == 1 ? fmt::format("{} skipped {} and went on to {}", who, due, own)
                                     : fmt::format("{} skipped {} calls, from {} to {}", who, broken.length, due, own);
      f.advice = "Look for a branch, an early return or an exception handler around the call that was skipped.";
    } else if (broken.kind == PatternBreak::Kind::foreign) {
      f.code = "uneven-steps";
      f.summary = fmt::format("{} left the pattern of earlier steps for {}; {} {} round once more", who, own, others,
                              core_.without(breakers.ranks).size() == 1 ? "goes" : "go");
      f.advice =
          "All ranks must take the same number of steps, and an operation between steps (evaluating, saving) must be "
          "made by all members of its group.";
    }
    f.explanation = fmt::format(
        "Each rank of the circle was compared with its own earlier steps ({} calls over all groups, {} times): {} did "
        "something new, {} did not.\n",
        broken.period, broken.repeats, who, others);
    for (const std::uint32_t row : {broken.row, broken.due}) {
      const auto [group, member] = place_of(view, row);
      f.evidence.push_back(call_evidence(job_, *group, *member, row));
    }
    return f;
  }

  Finding waits_for_itself() const {
    const Instance& own = graph_.instances[*instances_.begin()];
    Finding f = blank("p2p-cycle", core_);
    f.confidence = Confidence::high;
    f.summary = fmt::format("{} waits for itself: {}", core_.label(), call_text(own));
    f.explanation = fmt::format(
        "It waits for the {} that it would post itself, next: a call to oneself ends only where both halves are posted "
        "together.\n",
        wanted_in(own));
    f.advice =
        "Copy locally, or post both halves in one batch (batch_isend_irecv, ncclGroupStart); look for a peer that was "
        "computed as the rank itself (a pipeline of one stage, a wrap at its end).";
    return f;
  }

  // What is missing in a send or receive.
  static const char* wanted_in(const Instance& wait) { return wait.partner_sends.value_or(false) ? "send" : "receive"; }

  Finding p2p_cycle() const {
    Finding f = blank("p2p-cycle", core_);
    f.confidence = Confidence::high;
    f.summary = fmt::format("{} wait for each other in a circle of sends and receives", core_.label(8));
    f.explanation =
        "A send that is posted singly ends only when its receive is posted: each of these waits for a call that its "
        "partner would make next. Posted together in one group (batch_isend_irecv, ncclGroupStart) they would "
        "complete.\n";
    const bool queued = std::any_of(instances_.begin(), instances_.end(),
                                    [&](std::uint32_t i) { return graph_.instances[i].partner_queued; });
    if (queued) {
      f.explanation +=
          "That a call returns at once (isend) does not help where the next one runs on the same stream: it begins "
          "when the one before it is over.\n";
    }
    f.advice =
        "Alternate the order by parity (even ranks send first, odd ranks receive first) or post each rank's sends and "
        "receives in one batch.";
    return f;
  }

  // One caller and several who never call: it is the caller who makes one call too many.
  Finding one_too_many(const Instance& call, const RankSet& absent) const {
    const RankSet caller = ranks_of(graph_, call.waiters);
    Finding f = blank("rank-skipped", caller);
    const bool decided = absent.size() > 1;
    if (!decided) f.ranks.insert(absent);
    f.confidence = decided ? Confidence::high : Confidence::medium;
    f.summary = fmt::format("{} makes {}, which {} never {}", caller.label(8), call_text(call), absent.label(8),
                            absent.size() == 1 ? "makes" : "make");
    f.explanation =
        decided
            ? "One call too many on one rank is likelier than one too few on all others.\n"
            : "With two sides of one rank nobody can say whether one makes a call too many or the other one too few.\n";
    f.advice = "Look for a branch that only this rank takes.";
    return f;
  }

  static std::string verb_of(const Instance& missed, const RankSet& absent) {
    return fmt::format("{}{}", missed.p2p ? "post" : "call", absent.size() == 1 ? "s" : "");
  }

  // The call that `missed` waits for: of a send that is its receive.
  std::string missing_text(const Instance& missed) const {
    return missed.p2p ? fmt::format("the {} that meets {}", wanted_in(missed), call_text(missed)) : call_text(missed);
  }

  Finding left_out(const RankSet& absent) const {
    const Instance* missed = awaited_in(graph_.index_of(*absent.begin()));
    if (missed && !missed->p2p && missed->waiters.size() == 1 && !is_creation(*missed, *absent.begin())) {
      return one_too_many(*missed, absent);
    }
    Finding f = blank("missing-ranks", absent);
    f.confidence = missed && missed->waiters.size() > absent.size() ? Confidence::high : Confidence::medium;
    f.summary = missed ? fmt::format("{} never {} {}: {} for {}", absent.label(8), verb_of(*missed, absent),
                                     missing_text(*missed), waits(ranks_of(graph_, missed->waiters).label(8)),
                                     absent.size() == 1 ? "it" : "them")
                       : fmt::format("{} left out an operation", absent.label(8));
    const bool creation = missed && absent.size() == 1 && is_creation(*missed, *absent.begin());
    if (creation) f.code = "group-create";
    if (missed && missed->p2p) {
      f.code = "p2p-unmatched";
      f.ranks.insert(ranks_of(graph_, missed->waiters));
    }
    f.explanation =
        absent.size() == 1 ? "Its whole program is known and does not" : "Their whole programs are known and do not";
    f.explanation += " hold that call: the group's members do not fit the work, or the call was left out.\n";
    f.advice =
        "Compare the group's member list with who is meant to take part, and look for a branch that leads around the "
        "call.";
    return f;
  }

  // Two ranks that share groups with nobody else: neither is more at fault. Among more there may be innocent ones.
  bool only_between_two() const {
    return core_.size() == 2 && std::all_of(groups_.begin(), groups_.end(),
                                            [&](std::uint32_t group) { return job_.groups[group].ranks() == core_; });
  }

  Finding orders_differ() const {
    const bool mixed = p2p_ > 0 && groups_.size() == 1;
    Finding f =
        blank(mixed || (collectives_ == 0 && !reorder_would_help()) ? "p2p-unmatched" : "order-cross-group", core_);
    f.confidence = whole_programs() && only_between_two() ? Confidence::high : Confidence::medium;
    f.summary = mixed ? fmt::format("{} wait for each other: a send or receive against another operation of one group",
                                    core_.label(8))
                : p2p_ > 0 && collectives_ > 0
                    ? fmt::format("{} wait for each other in a circle of sends, receives and collectives of {} groups",
                                  core_.label(8), groups_.size())
                    : fmt::format("{} use {} groups in different orders and wait for each other", core_.label(8),
                                  groups_.size());
    f.explanation = mixed ? "What each waits for comes behind its partner's own wait.\n"
                          : "Within each group everything matches; the fault is the circle.\n";
    if (!whole_programs()) {
      f.explanation +=
          "The ranks use the groups in different orders, or one of them left a call out or made one too many: their "
          "earlier steps do not tell.\n";
    }
    f.advice = mixed ? "Make both calls in one order on these ranks, or post the send and its receive asynchronously."
                     : "Issue the operations of all groups in one order on all ranks.";
    return f;
  }

  Finding blank(const char* code, const RankSet& ranks) const {
    Finding f;
    f.code = code;
    f.ranks = ranks;
    for (std::uint32_t group : groups_) {
      if (f.subjects.size() < 8) f.subjects.push_back("group " + job_.groups[group].label);
    }
    return f;
  }

  std::string call_text(const Instance& wait) const {
    const GroupView& group = job_.groups[wait.group];
    std::string place = "group " + group.label;
    if (!wait.p2p) place += fmt::format(", seq {}", wait.seq);
    return fmt::format("{} ({})", describe_call(job_, group.members[wait.member], wait.row), place);
  }

  // Why the partner's call is not there although it was made.
  static std::string behind_what(const Instance& wait) {
    return wait.partner_queued ? fmt::format(" ({} enqueued, not begun)", wanted_in(wait)) : "";
  }

  void add_circle(Finding& f, std::uint32_t start) const {
    const auto steps = shortest_cycle(graph_, set_, start);
    f.explanation += "The circle:\n";
    for (std::size_t i = 0; i < steps.size() && i < 12; ++i) {
      const Instance& instance = graph_.instances[steps[i].instance];
      const RankSet awaited{graph_.ranks[steps[(i + 1) % steps.size()].rank]};
      f.explanation += "  " + step_text(job_, graph_, instance, awaited) + behind_what(instance) + "\n";
      const GroupView& group = job_.groups[instance.group];
      EvidenceLine line = call_evidence(job_, group, group.members[instance.member], instance.row);
      const bool told = std::any_of(f.evidence.begin(), f.evidence.end(), [&line](const EvidenceLine& other) {
        return other.path == line.path && other.text == line.text;
      });
      if (!told && f.evidence.size() < 4) f.evidence.push_back(std::move(line));
    }
    if (steps.size() > 12) f.explanation += fmt::format("  ... {} steps in all\n", steps.size());
  }

  const JobView& job_;
  const CallKeys& keys_;
  const WaitGraph& graph_;
  const std::vector<std::uint32_t>& set_;
  RankSet core_;
  std::set<std::uint32_t> instances_;
  std::set<std::uint32_t> groups_;
  std::size_t p2p_ = 0, collectives_ = 0;
};

}  // namespace

Finding cycle_finding(const JobView& job, const CallKeys& keys, const WaitGraph& graph,
                      const std::vector<std::uint32_t>& set) {
  return CycleJudge(job, keys, graph, set).judge();
}

}  // namespace ddx::analyzers
