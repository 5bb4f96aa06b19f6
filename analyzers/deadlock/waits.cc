#include "analyzers/deadlock/waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzers/deadlock/cycle.h"
#include "analyzers/deadlock/orphaned.h"
#include "analyzers/deadlock/stuck.h"
#include "analyzers/deadlock/wait_text.h"
#include "analyzers/match/alignment.h"
#include "analyzers/match/host_stack.h"
#include "analyzers/match/standstill.h"

namespace ddx::analyzers {
namespace {

constexpr std::size_t kMostStacks = 4;

// What the program of an idle rank says about its silence.
struct Silence {
  bool finished = false;           // the whole program is known and over
  std::optional<StopReason> stop;  // it ended by a stop
  std::string stop_text;
  // Ranks that are silent in one way are one finding.
  auto kind() const { return std::pair(finished, stop); }
};

Silence silence_of(const JobView& job, RankId rank) {
  Silence silence;
  const RankView* view = job.view_of(rank);
  if (!view || !view->record) return silence;
  const Program& program = job.trace->program(*view->record);
  silence.finished = view->record->whole_program;
  for (std::size_t row = 0; row < program.size(); ++row) {
    const Signature& s = job.trace->signature(program.signature(row));
    if (s.kind != OpKind::stop) continue;
    silence.stop = s.stop_reason;
    silence.stop_text = std::string(job.trace->text(s.name));
    silence.finished = false;
  }
  return silence;
}

// One operation with those members that do not wait for anybody themselves: the end of a chain.
struct ChainEnd {
  std::uint32_t instance = 0;
  std::vector<std::uint32_t> idle;  // ranks, silent in one way
};

// Idle ranks by the operation in which most wait for them, so that one silent rank gives one finding, not one a group.
std::vector<ChainEnd> chain_ends(const JobView& job, const WaitGraph& graph) {
  std::map<std::uint32_t, std::uint32_t> main_instance;
  for (std::uint32_t i = 0; i < graph.instances.size(); ++i) {
    for (std::uint32_t rank : graph.instances[i].missing) {
      if (!graph.waits_in[rank].empty()) continue;
      const auto [at, fresh] = main_instance.try_emplace(rank, i);
      if (!fresh && graph.instances[i].waiters.size() > graph.instances[at->second].waiters.size()) at->second = i;
    }
  }
  std::map<std::pair<std::uint32_t, decltype(Silence().kind())>, ChainEnd> by_kind;
  for (const auto& [rank, instance] : main_instance) {
    ChainEnd& end = by_kind[{instance, silence_of(job, graph.ranks[rank]).kind()}];
    end.instance = instance;
    end.idle.push_back(rank);
  }
  std::vector<ChainEnd> ends;
  for (auto& [kind, end] : by_kind) ends.push_back(std::move(end));
  return ends;
}

class ChainEndJudge {
 public:
  ChainEndJudge(const JobView& job, const CallKeys& keys, const WaitGraph& graph, const std::vector<RankStack>& stacks,
                const ChainEnd& end)
      : job_(job),
        keys_(keys),
        graph_(graph),
        stacks_(stacks),
        instance_(graph.instances[end.instance]),
        group_(job.groups[instance_.group]),
        idle_(ranks_of(graph, end.idle)) {
    silence_ = silence_of(job, *idle_.begin());
  }

  Finding judge() const {
    Finding f = instance_.p2p ? unmatched() : missing();
    if (f.victims.empty()) f.victims = victims_of(graph_, f.ranks);
    f.subjects = {"group " + group_.label};
    if (!instance_.p2p) f.subjects.push_back(fmt::format("seq {}", instance_.seq));
    f.evidence.push_back(call_evidence(job_, group_, waiter(), instance_.row));
    add_last_call(f);
    // Of those who ended, or rightly made no call, a stack says nothing about the hang.
    if (f.code != "dead-rank" && f.code != "rank0-only" && f.code != "rank-skipped") describe_hosts(f);
    return f;
  }

 private:
  const MemberView& waiter() const { return group_.members[instance_.member]; }

  bool is_new_group() const {
    return job_.trace->signature(waiter().program->signature(instance_.row)).kind == OpKind::new_group;
  }

  // One waits, and everybody else has nothing to do with the call, as far as is known.
  bool lonely() const {
    return !silence_.stop && group_.members.size() >= 3 && instance_.waiters.size() == 1 &&
           instance_.missing.size() + 1 == group_.members.size() && idle_.size() == instance_.missing.size();
  }

  // No other member ever makes a call like the waiting one.
  bool unique() const {
    const Call* call = waiter().call_at(instance_.seq);
    if (!call) return false;
    const std::uint64_t key = keys_.key(waiter(), *call);
    return std::none_of(group_.members.begin(), group_.members.end(), [&](const MemberView& member) {
      return member.rank != waiter().rank &&
             std::any_of(member.calls.begin(), member.calls.end(),
                         [&](const Call& other) { return keys_.key(member, other) == key; });
    });
  }

  // Dumps of a rank that is a step ahead and dumps of a rank that makes a call too many look alike, unless the call is
  // one that does not belong there: nobody ever made it, and others were made before it.
  bool merely_ahead() const {
    const bool first = !waiter().calls.empty() && waiter().calls.front().seq == instance_.seq;
    return !silence_.finished && (first || pattern_goes_on() || !unique());
  }

  // Few of many are ahead: the many may come yet, if the job was running.
  bool most_are_absent() const {
    return !silence_.finished && !silence_.stop && instance_.waiters.size() < idle_.size();
  }

  // The waiting call goes on with a repeating pattern that the idle ranks have left.
  bool pattern_goes_on() const { return pattern_of_wait().period > 0; }

  Pattern pattern_of_wait() const {
    const Call* call = waiter().call_at(instance_.seq);
    if (!call) return {};
    const auto before = keys_before(*call);
    const Pattern pattern = pattern_before(before);
    const bool fits = pattern.period > 0 && before[before.size() - pattern.period] == keys_.key(waiter(), *call);
    return fits ? pattern : Pattern();
  }

  std::vector<std::uint64_t> keys_before(const Call& call) const {
    const auto at = static_cast<std::size_t>(&call - waiter().calls.data());
    return keys_.keys(waiter(), at > 4096 ? at - 4096 : 0, std::min<std::size_t>(at, 4096));
  }

  // How many calls a member makes besides those of this group; nullopt: they are not all known.
  std::optional<std::size_t> calls_elsewhere(const MemberView& member) const {
    if (!member.record || member.in_all > member.calls.size()) return std::nullopt;
    std::size_t calls = 0;
    for (std::size_t row = 0; row < member.program->size(); ++row) {
      const OpKind kind = job_.trace->signature(member.program->signature(row)).kind;
      if (is_collective(kind) || is_p2p(kind)) ++calls;
    }
    return calls - std::min(calls, member.calls.size());
  }

  // The waiting call goes on with the pattern, but is no step more: that would show in the other calls of a step too,
  // and those are as many as everybody's.
  bool is_no_step() const {
    if (!silence_.finished) return false;
    const auto own = calls_elsewhere(waiter());
    const Pattern pattern = pattern_of_wait();
    if (!own || pattern.period == 0 || *own < pattern.repeats) return false;
    return std::all_of(group_.members.begin(), group_.members.end(), [&](const MemberView& member) {
      return member.rank == waiter().rank ||
             (calls_elsewhere(member) == own && member.calls.size() + 1 == waiter().calls.size());
    });
  }

  bool ended() const { return silence_.stop && *silence_.stop != StopReason::stuck; }

  Finding unmatched() const {
    if (ended()) return dead();
    Finding f;
    const RankSet waiting = ranks_of(graph_, instance_.waiters);
    const char* wanted = *instance_.partner_sends ? "send" : "receive";
    f.ranks = idle_;
    // Only a whole program shows that a call never comes; of what a recorder held, that it had not come.
    f.code = silence_.finished ? "p2p-unmatched" : "missing-ranks";
    if (silence_.finished) f.ranks.insert(waiting);
    f.confidence = silence_.finished ? Confidence::high : Confidence::medium;
    f.summary =
        fmt::format("{} in {} for {}, which {} the {} (group {})", waits(waiting.label(8)),
                    describe_call(job_, waiter(), instance_.row), idle_.label(8),
                    silence_.finished || silence_.stop ? (idle_.size() == 1 ? "never posts" : "never post")
                                                       : (idle_.size() == 1 ? "has not posted" : "have not posted"),
                    wanted, group_.label);
    f.explanation = idle_.size() == 1
                        ? fmt::format(
                              "{} is in no operation itself: all that it posted is complete, and the {} is "
                              "not among it.\n",
                              idle_.label(8), wanted)
                        : fmt::format(
                              "{} are in no operation themselves: all that they posted is complete, and the "
                              "{} is not among it.\n",
                              idle_.label(8), wanted);
    f.advice = silence_.finished
                   ? "Compare the two call sites: either the call is one too many, or its partner was left out."
                   : look_at_hosts() + " If it is past that place, the call that waits is one too many.";
    if (silence_.stop) describe_stop(f);
    return f;
  }

  std::string look_at_hosts() const {
    return idle_.size() == 1
               ? fmt::format("Look at what {} does: a stack of its process (py-spy dump) or its log shows where it is.",
                             idle_.label(8))
               : fmt::format(
                     "Look at what {} do: stacks of their processes (py-spy dump) or their logs show where they are.",
                     idle_.label(8));
  }

  Finding missing() const {
    Finding f;
    if (ended()) return dead();
    if (lonely() && is_new_group()) return created_alone();
    if (lonely() && merely_ahead()) return one_ahead();
    if (lonely() && (!pattern_goes_on() || is_no_step())) return unique() ? alone() : one_too_many();
    f.ranks = idle_;
    f.code = "missing-ranks";
    f.confidence = group_.members_known && instance_.waiters.size() > 1 ? Confidence::high : Confidence::medium;
    if (most_are_absent()) f.confidence = Confidence::low;
    if (is_new_group()) f.code = "group-create";
    if (silence_.finished && pattern_goes_on()) f.code = "uneven-steps";
    if (silence_.finished && group_.members.size() == 2) {
      // One call less here or one more there: the same sentence.
      f.ranks.insert(ranks_of(graph_, instance_.waiters));
      if (f.code == "missing-ranks") f.code = "rank-skipped";
      f.confidence = Confidence::medium;
    }
    const std::string call = describe_call(job_, waiter(), instance_.row);
    const std::string waiting = ranks_of(graph_, instance_.waiters).label(8);
    if (f.code == "uneven-steps") {
      f.summary = fmt::format("{} left a repeating pattern earlier: {} in {} (group {}, seq {}) for {}", idle_.label(8),
                              waits(waiting), call, group_.label, instance_.seq, idle_.size() == 1 ? "it" : "them");
      f.advice = "All ranks must take the same number of steps: agree on it before the loop, pad, or use join().";
    } else {
      // A dump is of a moment: what its rank does later it cannot show.
      const char* not_called = silence_.finished   ? "never called"
                               : idle_.size() == 1 ? "has not called"
                                                   : "have not called";
      f.summary = fmt::format("{} {} {} (group {}, seq {}): {} for {}", idle_.label(8), not_called, call, group_.label,
                              instance_.seq, waits(waiting), idle_.size() == 1 ? "it" : "them");
      f.advice = look_at_hosts();
    }
    const std::size_t present = group_.members.size() - instance_.missing.size() - instance_.unseen.size();
    f.explanation = fmt::format(
        "{} of {} members {} enqueued seq {} of group {}; all that {} enqueued is complete, and {}.\n", present,
        group_.members.size(), present == 1 ? "has" : "have", instance_.seq, group_.label, idle_.label(8),
        idle_.size() == 1
            ? "it waits for nobody: its host is elsewhere (data, a lock, another branch), or it has ended"
            : "they wait for nobody: their hosts are elsewhere (data, a lock, another branch), or they have ended");
    if (instance_.gave_up) {
      f.explanation +=
          "Where the call is over all the same, it was given up (time-out or error): it cannot have completed without "
          "every member.\n";
      if (f.confidence == Confidence::high) f.confidence = Confidence::medium;
    }
    if (f.code == "uneven-steps" && instance_.waiters.size() < idle_.size()) {
      f.confidence = std::min(f.confidence, Confidence::medium);
      f.explanation += fmt::format(
          "One step more on {} is the same fact: which number of steps is meant, the calls do "
          "not tell.\n",
          waiting);
    }
    if (most_are_absent()) {
      f.explanation += fmt::format("Most members are absent: that {} {} too far ahead would look the same.\n", waiting,
                                   instance_.waiters.size() == 1 ? "is" : "are");
    }
    if (silence_.stop) describe_stop(f);
    return f;
  }

  // The stacks of all idle ranks are known, and none of them is inside a call that waits for others.
  bool hosts_elsewhere() const {
    std::size_t elsewhere = 0;
    for (const RankStack& seen : stacks_) {
      if (!idle_.contains(seen.rank)) continue;
      if (seen.stack->timed_out || !seen.stack->distributed_call.empty()) return false;
      ++elsewhere;
    }
    return elsewhere == idle_.size();
  }

  // Where the idle ranks' own code stood, if somebody looked.
  void describe_hosts(Finding& f) const {
    std::vector<std::string> sites;
    for (const RankStack& seen : stacks_) {
      if (!idle_.contains(seen.rank) || sites.size() == kMostStacks) continue;
      sites.push_back(short_call_site(*seen.stack));
      f.explanation += stack_sentence(seen);
      f.evidence.push_back(stack_evidence(*job_.evidence, seen));
    }
    if (f.code == "missing-ranks" && hosts_elsewhere()) f.code = "stuck-host";
    const bool only_absent = f.code == "missing-ranks" || f.code == "stuck-host" || f.code == "group-create";
    if (!only_absent || sites.size() != idle_.size() || sites.front().empty()) return;
    f.advice = fmt::format("Look at {}: {} {} taken.", sites.front(), idle_.label(8),
                           idle_.size() == 1 ? "was there when its stack was" : "were there when their stacks were");
  }

  Finding dead() const {
    Finding f;
    f.code = "dead-rank";
    f.ranks = idle_;
    f.confidence = Confidence::high;
    const std::string text = idle_.size() > 1 || silence_.stop_text.empty() ? "" : ": " + silence_.stop_text;
    f.summary = fmt::format("{} ended ({}{}) before {} (group {})", idle_.label(8), name_of(*silence_.stop), text,
                            describe_call(job_, waiter(), instance_.row), group_.label);
    f.explanation = fmt::format("{} for it in a call that it can no longer make.\n",
                                waits(ranks_of(graph_, instance_.waiters).label(8)));
    if (idle_.size() > 1) describe_stop(f);
    f.advice = fmt::format("The cause is what ended {}; the others only wait.",
                           idle_.size() == 1 ? "that rank" : "those ranks");
    return f;
  }

  Finding alone() const {
    Finding f;
    const RankSet one = ranks_of(graph_, instance_.waiters);
    f.code = "rank0-only";
    f.ranks = one;
    f.confidence = silence_.finished ? Confidence::high : Confidence::medium;
    f.summary = fmt::format("only {} makes {} (group {}, seq {}); no other member does", one.label(),
                            describe_call(job_, waiter(), instance_.row), group_.label, instance_.seq);
    f.explanation = fmt::format(
        "All {} other members are idle: everything that they enqueued is complete. One call too many "
        "on one rank is likelier than one too few on {}.\n",
        idle_.size(), idle_.size());
    f.advice =
        "Look for a collective under a rank test (saving, logging, evaluating), perhaps hidden in a property or "
        "forward.";
    return f;
  }

  // One caller of a call that others make too, only not so often.
  Finding one_too_many() const {
    Finding f;
    f.code = "rank-skipped";
    f.ranks = ranks_of(graph_, instance_.waiters);
    f.confidence = Confidence::high;
    f.summary = fmt::format("{} makes one call more than the other members of group {}: {} (seq {})", f.ranks.label(),
                            group_.label, describe_call(job_, waiter(), instance_.row), instance_.seq);
    f.explanation = fmt::format(
        "{} have made all their calls, and all are complete. One call too many on one rank is likelier than one too "
        "few on {}. Calls before it matched by shape only: where equal calls precede it, the one too many may be an "
        "earlier one.\n",
        idle_.label(8), idle_.size());
    f.advice = "Look for a branch, a retry or an exception handler that only this rank takes.";
    return f;
  }

  Finding created_alone() const {
    Finding f;
    f.code = "group-create";
    f.ranks = ranks_of(graph_, instance_.waiters);
    f.confidence = silence_.finished ? Confidence::high : Confidence::medium;
    f.summary = fmt::format("only {} creates a group: {} (group {}, seq {})", f.ranks.label(),
                            describe_call(job_, waiter(), instance_.row), group_.label, instance_.seq);
    f.explanation = "Every rank must take part in making a group, also those that are no members of it.\n";
    f.advice = "Create groups on all ranks in one order, outside of any rank test.";
    return f;
  }

  // Dumps of one rank in a call that its others may or may not come to make.
  Finding one_ahead() const {
    Finding f;
    const RankSet one = ranks_of(graph_, instance_.waiters);
    // Without a word of trouble nothing says that anything is wrong.
    const bool trouble = trouble_in_logs(*job_.evidence);
    f.code = trouble ? "missing-ranks" : "inconclusive";
    f.severity = trouble ? Severity::error : Severity::info;
    f.confidence = Confidence::low;
    if (trouble) f.ranks = idle_;
    if (!trouble) f.victims = one;
    f.summary = fmt::format("{} is one call ahead of all other members: {} (group {}, seq {})", one.label(),
                            describe_call(job_, waiter(), instance_.row), group_.label, instance_.seq);
    f.explanation = fmt::format(
        "All {} other members are idle: everything that they enqueued is complete. Three stories fit: the job is "
        "moving and they are about to come; their hosts are stuck elsewhere; or {} makes a step that they do not "
        "make.\n",
        idle_.size(), one.label());
    f.advice =
        "Dump again after a while: if nothing has moved, take stacks of the idle ranks (py-spy dump), which show "
        "whether they are past this call or on the way to it.";
    return f;
  }

  void describe_stop(Finding& f) const {
    std::size_t told = 0;
    for (const RankId rank : idle_) {
      if (++told > kMostStacks) break;
      const Silence silence = silence_of(job_, rank);
      f.explanation +=
          fmt::format("The list of rank {} ends with: {} {}\n", rank.value, name_of(*silence.stop), silence.stop_text);
    }
  }

  // The last thing that the first idle rank did in this group.
  void add_last_call(Finding& f) const {
    for (const MemberView& member : group_.members) {
      if (member.rank != *idle_.begin() || !member.record || member.issued == 0) continue;
      f.evidence.push_back(call_evidence(job_, group_, member, member.calls[member.issued - 1].row));
    }
  }

  const JobView& job_;
  const CallKeys& keys_;
  const WaitGraph& graph_;
  const std::vector<RankStack>& stacks_;
  const Instance& instance_;
  const GroupView& group_;
  RankSet idle_;
  Silence silence_;
};

// Circles of waits that hold their ranks for certain.
void add_circles(const JobView& job, const CallKeys& keys, const WaitGraph& graph, std::vector<Finding>& findings) {
  const WaitGraph sure = without_passed(graph);
  for (const auto& set : cycles(sure)) {
    Finding finding = cycle_finding(job, keys, sure, set);
    finding.victims = victims_of(graph, finding.ranks);
    findings.push_back(std::move(finding));
  }
}

// Circles of programs that came to rest: there nothing is left to guess.
void add_held_circles(const JobView& job, const CallKeys& keys, const Standstill& standstill,
                      std::vector<Finding>& findings) {
  for (const HeldCircle& circle : held_circles(job, standstill)) {
    findings.push_back(cycle_finding(job, keys, circle.graph, circle.ranks));
  }
}

// What nobody ever meets. Circles through its ranks are what came of it, also where they closed before a rank came to
// such a call: where a channel has more calls at one end, a call before the circle was left out, added or misled.
void add_orphans(const JobView& job, const WaitGraph& graph, const std::vector<Orphan>& orphans,
                 const RankSet& broken_by, std::vector<Finding>& findings) {
  if (orphans.empty()) return;
  RankSet involved;
  for (const Orphan& call : orphans) {
    const auto& members = job.groups[call.group].members;
    involved.insert(RankSet{members[call.member].rank, members[call.partner].rank});
  }
  const std::size_t circles =
      std::erase_if(findings, [&](const Finding& circle) { return !circle.ranks.common(involved).empty(); });
  std::vector<Finding> unmet = orphan_findings(job, graph, orphans, OrphansTold::standing);
  if (unmet.empty() && circles > 0) unmet = orphan_findings(job, graph, orphans, OrphansTold::all);
  for (Finding& finding : unmet) {
    if (finding.ranks.common(broken_by).empty()) findings.push_back(std::move(finding));
  }
}

// Who waits for a cause behind calls that hold its stream.
void add_held_up(const JobView& job, const Standstill& standstill, std::vector<Finding>& findings) {
  for (Finding& f : findings) {
    if (f.severity == Severity::error && !f.ranks.empty()) f.victims.insert(held_up_by(job, standstill, f.ranks));
  }
}

// Circles that close only where hosts wait for calls that they had gone on from. With a silent rank at the end of
// another chain that rank explains as much; so these are told only where nothing else is.
void add_likely_circles(const JobView& job, const CallKeys& keys, const WaitGraph& graph,
                        std::vector<Finding>& findings) {
  for (const auto& set : cycles(graph)) {
    Finding finding = cycle_finding(job, keys, graph, set);
    finding.confidence = std::min(finding.confidence, Confidence::medium);
    finding.explanation +=
        "Some of these calls return at once, and their ranks issued others after them: that their hosts wait for them "
        "now is likely, since nobody else is missing, and not recorded.\n";
    findings.push_back(std::move(finding));
  }
}

// Nobody is idle and nobody is in a circle: every chain of waits ends in operations that everybody has entered. What
// keeps those is judged; who waits further up is a victim.
void add_bottoms(const JobView& job, const CallKeys& keys, const WaitGraph& graph, std::vector<Finding>& findings) {
  WaitGraph bottoms;
  bottoms.ranks = graph.ranks;
  bottoms.waits_in.resize(graph.ranks.size());
  bottoms.awaited_in.resize(graph.ranks.size());
  for (const Instance& instance : graph.instances) {
    if (instance.missing.empty()) add_instance(bottoms, instance);
  }
  findings = judge_without_missing(job, keys, bottoms.instances.empty() ? graph : bottoms);
  for (Finding& f : findings) {
    RankSet held = f.ranks;
    held.insert(f.victims);
    f.victims.insert(victims_of(graph, held).without(f.ranks));
  }
}

// Whether all that `partner` has open with `rank` in that group was posted behind its call of `instance`.
bool posted_behind(const JobView& job, const Instance& instance, const GroupView& group, RankId partner, RankId rank) {
  const MemberView* waiter = job.groups[instance.group].member_of(partner);
  const MemberView* sender = group.member_of(partner);
  const MemberView* other = group.member_of(rank);
  const Call* call = waiter ? waiter->call_at(instance.seq) : nullptr;
  if (!call || !sender || !other) return false;
  bool any = false;
  for (const std::uint32_t row : sender->p2p) {
    if (!sender->in_flight(row)) continue;
    const auto peer = job.trace->peer(*sender->record, job.trace->signature(sender->program->signature(row)));
    if (!peer || *peer != static_cast<std::int64_t>(other->position)) continue;
    if (row < call->row) return false;
    any = true;
  }
  return any;
}

// Whether `rank` waits in nothing but sends and receives that its partners have posted behind a call of `instance`: it
// went past that call.
bool went_past(const JobView& job, const WaitGraph& graph, const Instance& instance, std::uint32_t rank) {
  const std::set<std::uint32_t> there(instance.waiters.begin(), instance.waiters.end());
  const auto& own = graph.waits_in[rank];
  return !own.empty() && std::all_of(own.begin(), own.end(), [&](std::uint32_t i) {
    const Instance& wait = graph.instances[i];
    return wait.p2p && wait.missing.empty() && wait.waiters.size() > 1 &&
           std::all_of(wait.waiters.begin(), wait.waiters.end(), [&](std::uint32_t waiter) {
             return waiter == rank || (there.contains(waiter) && posted_behind(job, instance, job.groups[wait.group],
                                                                               graph.ranks[waiter], graph.ranks[rank]));
           });
  });
}

// Collectives that everybody is in but ranks that went past them.
void add_skipped(const JobView& job, const WaitGraph& graph, std::vector<Finding>& findings) {
  for (const Instance& instance : graph.instances) {
    if (instance.p2p || instance.missing.empty() || !instance.unseen.empty()) continue;
    const bool all_past = std::all_of(instance.missing.begin(), instance.missing.end(),
                                      [&](std::uint32_t rank) { return went_past(job, graph, instance, rank); });
    if (!all_past || instance.missing.size() >= instance.waiters.size()) continue;
    const GroupView& group = job.groups[instance.group];
    const Instance& own = graph.instances[graph.waits_in[instance.missing.front()].front()];
    Finding f;
    f.code = "rank-skipped";
    f.confidence = Confidence::medium;
    f.ranks = ranks_of(graph, instance.missing);
    f.victims = ranks_of(graph, instance.waiters);
    f.subjects = {"group " + group.label, fmt::format("seq {}", instance.seq)};
    f.summary = fmt::format("{} skipped {} (group {}, seq {}): {} for {} there", f.ranks.label(8),
                            describe_call(job, group.members[instance.member], instance.row), group.label, instance.seq,
                            waits(f.victims.label(8)), f.ranks.size() == 1 ? "it" : "them");
    f.explanation = fmt::format(
        "{} in sends and receives ({}) that the others have posted too, behind that call: it cannot come any more.\n",
        waits(f.ranks.label(8)), describe_call(job, job.groups[own.group].members[own.member], own.row));
    f.evidence.push_back(call_evidence(job, group, group.members[instance.member], instance.row));
    f.evidence.push_back(call_evidence(job, job.groups[own.group], job.groups[own.group].members[own.member], own.row));
    f.advice =
        "Look at the call site shown: a branch, an early return or an exception handler that only some ranks take "
        "leads around it.";
    findings.push_back(std::move(f));
  }
}

// Receives whose send is over, of ranks that others wait for: the data are there, and the receive has not run.
void add_unfinished_receives(const JobView& job, const WaitGraph& graph, std::vector<Finding>& findings) {
  for (const Instance& instance : graph.instances) {
    if (!instance.partner_over || graph.awaited_in[instance.waiters.front()].empty()) continue;
    const GroupView& group = job.groups[instance.group];
    const MemberView& member = group.members[instance.member];
    const RankSet receiver{member.rank};
    // The moment between the two is short, but a running job has it too.
    const bool trouble = trouble_in_logs(*job.evidence);
    Finding f;
    f.code = trouble ? "stuck-device" : "inconclusive";
    f.severity = trouble ? Severity::error : Severity::info;
    f.confidence = trouble ? Confidence::medium : Confidence::low;
    if (trouble) f.ranks = receiver;
    f.victims = victims_of(graph, receiver);
    if (!trouble) f.victims.insert(receiver);
    f.subjects = {"group " + group.label};
    f.summary =
        fmt::format("{} is in {} (group {}), whose send is over, and {} for it", receiver.label(),
                    describe_call(job, member, instance.row), group.label, waits(victims_of(graph, receiver).label(8)));
    f.explanation =
        "The sender's side is complete, so the receive lacks nothing but to be run: the device is busy with work "
        "enqueued before it, or its stream waits for another. A job caught in motion looks like this for a moment.\n";
    f.evidence.push_back(call_evidence(job, group, member, instance.row));
    f.advice = fmt::format(
        "Look at what runs on the device of {} (cuda-gdb, nvidia-smi), and at the stack of its "
        "process (py-spy dump --native).",
        receiver.label());
    findings.push_back(std::move(f));
  }
}

}  // namespace

WaitJudgement judge_waits(const JobView& job, const CallKeys& keys, const std::vector<CallPlace>& broken,
                          const RankSet& broken_by) {
  const std::vector<Orphan> orphans = find_orphans(job);
  const WaitGraph graph = missing_call_graph(job, broken, orphans);
  WaitJudgement judgement;
  std::vector<RankId> waiting;
  for (std::uint32_t rank = 0; rank < graph.ranks.size(); ++rank) {
    if (!graph.waits_in[rank].empty()) waiting.push_back(graph.ranks[rank]);
  }
  judgement.waiting = RankSet(std::move(waiting));
  if (judgement.waiting.empty()) return judgement;
  // A circle through a rank whose list is already known to be wrong is that fault's consequence.
  const std::optional<Standstill> standstill = standstill_of(job, orphans);
  if (broken.empty() && standstill) {
    add_held_circles(job, keys, *standstill, judgement.findings);
  } else if (broken.empty()) {
    add_circles(job, keys, graph, judgement.findings);
  }
  add_orphans(job, graph, orphans, broken_by, judgement.findings);
  const std::vector<RankStack> stacks = last_host_stacks(*job.evidence);
  for (const ChainEnd& end : chain_ends(job, graph)) {
    Finding finding = ChainEndJudge(job, keys, graph, stacks, end).judge();
    if (finding.ranks.common(broken_by).empty()) judgement.findings.push_back(std::move(finding));
  }
  if (standstill) add_held_up(job, *standstill, judgement.findings);
  if (!judgement.findings.empty() || !broken.empty() || !broken_by.empty()) return judgement;
  add_likely_circles(job, keys, graph, judgement.findings);
  if (judgement.findings.empty()) add_skipped(job, graph, judgement.findings);
  if (judgement.findings.empty()) add_unfinished_receives(job, graph, judgement.findings);
  if (judgement.findings.empty()) add_bottoms(job, keys, graph, judgement.findings);
  return judgement;
}

}  // namespace ddx::analyzers
