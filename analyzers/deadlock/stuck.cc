#include "analyzers/deadlock/stuck.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzers/deadlock/cycle.h"
#include "analyzers/deadlock/wait_text.h"
#include "analyzers/match/host_stack.h"

namespace ddx::analyzers {
namespace {

const Instance& widest(const WaitGraph& graph) {
  return *std::max_element(graph.instances.begin(), graph.instances.end(),
                           [](const Instance& a, const Instance& b) { return a.waiters.size() < b.waiters.size(); });
}

// Ranks without evidence that the waiting operations need.
RankSet unseen_of(const WaitGraph& graph) {
  RankSet unseen;
  for (const Instance& instance : graph.instances) unseen.insert(ranks_of(graph, instance.unseen));
  return unseen;
}

Finding silent_ranks(const JobView& job, const WaitGraph& graph, const RankSet& unseen) {
  const Instance& wait = widest(graph);
  const GroupView& group = job.groups[wait.group];
  Finding f;
  // One or a few of many: their silence speaks. Many: somebody did not collect the files.
  const bool few = unseen.size() * 4 <= job.known.size();
  f.code = few ? "dead-rank" : "inconclusive";
  f.severity = few ? Severity::error : Severity::info;
  f.confidence = few ? Confidence::medium : Confidence::low;
  if (few) f.ranks = unseen;
  f.victims = few ? victims_of(graph, unseen) : RankSet();
  const std::string call = fmt::format("{} (group {}, seq {})",
                                       describe_call(job, group.members[wait.member], wait.row), group.label, wait.seq);
  f.subjects = {"group " + group.label, fmt::format("seq {}", wait.seq)};
  f.summary = few ? fmt::format("{} left no evidence where all others did: {} in {}", unseen.label(8),
                                waits(ranks_of(graph, wait.waiters).label(8)), call)
                  : fmt::format("{} of {} ranks left no evidence: whoever is at fault may be among them ({} in {})",
                                unseen.size(), job.known.size(), waits(ranks_of(graph, wait.waiters).label(8)), call);
  f.explanation =
      "All ranks with evidence have entered the operation and agree on it; only ranks without evidence can keep it "
      "from ending, unless the fault is below (device, link, library).\n";
  f.evidence.push_back(call_evidence(job, group, group.members[wait.member], wait.row));
  f.advice = few ? fmt::format(
                       "Look for the log{0} and the process{1} of {2}: {3} probably crashed or {4} killed before {5} "
                       "could dump.",
                       unseen.size() == 1 ? "" : "s", unseen.size() == 1 ? "" : "es", unseen.label(8),
                       unseen.size() == 1 ? "it has" : "they have", unseen.size() == 1 ? "was" : "were",
                       unseen.size() == 1 ? "it" : "they")
                 : fmt::format("Collect the dumps of {} and run this again.", unseen.label(8));
  return f;
}

// Members that have started the operation, and those that only enqueued it, where start times can be known.
struct Starts {
  RankSet started, scheduled;
};

Starts starts_of(const GroupView& group, const Instance& wait) {
  Starts starts;
  for (const MemberView& member : group.members) {
    const Call* call = member.record ? member.call_at(wait.seq) : nullptr;
    if (!call || !member.record->timing.value_or(false)) continue;
    const OpState state = member.program->state(call->row);
    if (state == OpState::started || state == OpState::completed) starts.started.insert(member.rank);
    if (state == OpState::scheduled) starts.scheduled.insert(member.rank);
  }
  return starts;
}

Finding device_finding(const JobView& job, const Instance& wait, const Starts& starts) {
  const GroupView& group = job.groups[wait.group];
  Finding f;
  f.code = "stuck-device";
  f.ranks = starts.scheduled;
  f.victims = starts.started;
  f.confidence = Confidence::medium;
  f.subjects = {"group " + group.label, fmt::format("seq {}", wait.seq)};
  f.summary = fmt::format("the device{} of {} never started {} (group {}, seq {}), which {} started",
                          starts.scheduled.size() == 1 ? "" : "s", starts.scheduled.label(8),
                          describe_call(job, group.members[wait.member], wait.row), group.label, wait.seq,
                          starts.started.label(8));
  f.explanation =
      "Every member has enqueued the call. Where it is only scheduled, the device is still busy with work enqueued "
      "before it: a kernel that does not end, or a copy.\n";
  f.evidence.push_back(call_evidence(job, group, group.members[wait.member], wait.row));
  f.advice =
      starts.scheduled.size() == 1
          ? "Look at what runs on that device (cuda-gdb, nvidia-smi, py-spy dump --native of its process)."
          : "Look at what runs on those devices (cuda-gdb, nvidia-smi, py-spy dump --native of their processes).";
  return f;
}

// Whether `wanted(record, signature)` holds for some member's call of the operation.
template <typename Wanted>
bool any_call(const JobView& job, const Instance& wait, Wanted wanted) {
  if (wait.p2p) return false;
  const auto& members = job.groups[wait.group].members;
  return std::any_of(members.begin(), members.end(), [&](const MemberView& member) {
    const Call* call = member.record ? member.call_at(wait.seq) : nullptr;
    return call && wanted(*member.record, job.trace->signature(member.program->signature(call->row)));
  });
}

// An all_to_all whose pairs cannot be compared, since some member's split lists were not recorded.
bool pairs_unknown(const JobView& job, const Instance& wait) {
  return any_call(job, wait, [](const RankRecord&, const Signature& s) {
    return s.kind == OpKind::all_to_all && (s.split_in.empty() || s.split_out.empty());
  });
}

void say_pairs_unknown(Finding& f, const std::string& call) {
  f.confidence = Confidence::low;
  f.summary =
      fmt::format("all members entered {}, but it does not end; whether their splits fit is not recorded", call);
  f.explanation =
      "Nobody is missing. What each member sends to each other may differ by right, and the lists of it are not in "
      "these dumps (recorders write them from version 2.11 on): a pair that does not fit hangs just so, and totals "
      "cannot tell. If the lists fit, what is left is below: a device, a link, the library. (If the job was still "
      "making progress when this was taken, this is what a healthy run looks like.)\n";
  f.advice =
      "Print the input and output splits of every rank before this call and compare pair by pair; only if they fit, "
      "take stacks of all ranks (py-spy dump) and look at NCCL's log, at dmesg and at the links.";
}

// Members with evidence of which nobody can say whether they made the call.
RankSet unknown_reach(const GroupView& group, const Instance& wait) {
  std::vector<RankId> ranks;
  for (const MemberView& member : group.members) {
    const bool may = member.record && !member.reach_known && member.last_enqueued.value_or(0) < wait.seq;
    if (may) ranks.push_back(member.rank);
  }
  return RankSet(std::move(ranks));
}

// Somebody is through a call that nobody passes before all have made it. (Where the job is in trouble a call may be
// over because it was given up.)
bool made_by_all(const JobView& job, const Instance& wait) {
  const GroupView& group = job.groups[wait.group];
  const MemberView& shown = group.members[wait.member];
  if (wait.p2p || !synchronizes(job.trace->signature(shown.program->signature(wait.row)).kind)) return false;
  const bool in_trouble = trouble_in_logs(*job.evidence);
  return std::any_of(group.members.begin(), group.members.end(), [&](const MemberView& member) {
    const Call* call = member.record ? member.call_at(wait.seq) : nullptr;
    return call && member.completed(*call) && !(in_trouble && only_tells_over(*member.record));
  });
}

Finding cannot_tell(const JobView& job, const WaitGraph& graph, const Instance& wait, const RankSet& unknown) {
  const GroupView& group = job.groups[wait.group];
  Finding f;
  f.code = "inconclusive";
  f.severity = Severity::info;
  f.confidence = Confidence::high;
  f.victims = ranks_of(graph, wait.waiters);
  f.subjects = {"group " + group.label, fmt::format("seq {}", wait.seq)};
  f.summary =
      fmt::format("{} in {} (group {}, seq {}); whether {} made that call is not known", waits(f.victims.label(8)),
                  describe_call(job, group.members[wait.member], wait.row), group.label, wait.seq, unknown.label(8));
  f.explanation =
      "There is no dump, or it was cut or taken earlier than the others, or its ring lost the calls of this group. All "
      "other ranks have made the call and agree on it.\n";
  f.evidence.push_back(call_evidence(job, group, group.members[wait.member], wait.row));
  f.advice = fmt::format("Get {} of {} from the time of the hang, or {} (py-spy dump).",
                         unknown.size() == 1 ? "a whole dump" : "whole dumps", unknown.label(8),
                         unknown.size() == 1 ? "a stack of its process" : "stacks of their processes");
  return f;
}

// The root of a broadcast and its kin is in no dump of PyTorch's recorder.
bool root_unknown(const JobView& job, const Instance& wait) {
  return any_call(job, wait, [&](const RankRecord& record, const Signature& s) {
    return is_rooted(s.kind) && !job.trace->peer(record, s);
  });
}

void say_root_unknown(Finding& f, const std::string& call) {
  f.confidence = Confidence::low;
  f.summary =
      fmt::format("all members entered {}, but it does not end; whether they name one root is not recorded", call);
  f.explanation =
      "Nobody is missing and no size, type or order differs. Which root each of them names is not in these dumps, and "
      "ranks that name different ones hang just so. If they name one, what is left is below: a device, a link, the "
      "library. (If the job was still making progress when this was taken, this is what a healthy run looks like.)\n";
  f.advice =
      "Look at what root (src, dst) each rank passes at the call site shown, in ranks of the world or of the group; "
      "only if they agree, take stacks of all ranks (py-spy dump) and look at the links.";
}

// A collective that needs all members ended once, seen by a recorder that tells success from a time-out.
bool ended_once(const JobView& job, const GroupView& group) {
  return std::any_of(group.members.begin(), group.members.end(), [&](const MemberView& member) {
    if (!member.record || only_tells_over(*member.record)) return false;
    return std::any_of(member.calls.begin(), member.calls.end(), [&](const Call& call) {
      return synchronizes(job.trace->signature(member.program->signature(call.row)).kind) && member.completed(call);
    });
  });
}

// Members that never made a call are invisible in a group whose member list was not recorded.
bool members_unknown(const JobView& job, const GroupView& group) {
  if (group.members_known || group.ranks() == job.known || group.declared_size == group.members.size()) return false;
  return !(job.seen == job.known && ended_once(job, group));
}

Finding unknown_members(const JobView& job, const WaitGraph& graph, const Instance& wait) {
  constexpr std::size_t kMostStacks = 4;
  const GroupView& group = job.groups[wait.group];
  RankSet waiting;
  for (const Instance& instance : graph.instances) waiting.insert(ranks_of(graph, instance.waiters));
  const RankSet idle = job.seen.without(waiting);
  Finding f;
  f.code = "inconclusive";
  f.severity = Severity::info;
  f.confidence = Confidence::low;
  f.victims = ranks_of(graph, wait.waiters);
  f.subjects = {"group " + group.label};
  if (!wait.p2p) f.subjects.push_back(fmt::format("seq {}", wait.seq));
  f.summary =
      fmt::format("{} in {} (group {}), whose members are not recorded: who is missing there is not known",
                  waits(f.victims.label(8)), describe_call(job, group.members[wait.member], wait.row), group.label);
  f.explanation =
      "These dumps do not say who belongs to that group, so a member that never made a call there cannot be seen.\n";
  if (!idle.empty()) {
    f.explanation +=
        fmt::format("{} {} in nothing that is recorded.\n", idle.label(8), idle.size() == 1 ? "waits" : "wait");
  }
  f.evidence.push_back(call_evidence(job, group, group.members[wait.member], wait.row));
  std::size_t told = 0;
  for (const RankStack& seen : last_host_stacks(*job.evidence)) {
    if (!idle.contains(seen.rank) || ++told > kMostStacks) continue;
    f.explanation += stack_sentence(seen);
    f.evidence.push_back(stack_evidence(*job.evidence, seen));
  }
  f.advice =
      "Compare that group's member list in the program with the ranks that are in it here; a group must be made "
      "by all ranks of the job, in one order.";
  return f;
}

std::string advice_for(const MemberView& waiter) {
  if (waiter.record && waiter.record->backend == "gloo") {
    return "Take stacks of all ranks (py-spy dump), and look at the connections between the hosts of this group: the "
           "interface that gloo took (GLOO_SOCKET_IFNAME), a firewall, a host that is gone.";
  }
  return "Take stacks of all ranks (py-spy dump), look at NCCL's log for network warnings and at dmesg for Xid errors, "
         "and test the links (nccl-tests) between the hosts of this group.";
}

std::optional<Finding> stuck_finding(const JobView& job, const WaitGraph& graph) {
  const Instance& wait = widest(graph);
  const GroupView& group = job.groups[wait.group];
  RankSet done;
  for (const MemberView& member : group.members) {
    const Call* call = member.record && !wait.p2p ? member.call_at(wait.seq) : nullptr;
    if (call && member.completed(*call)) done.insert(member.rank);
  }
  // Complete here and not yet there, and nobody complains: that is how any running job looks for a moment.
  if (!done.empty() && !trouble_in_logs(*job.evidence)) return std::nullopt;
  Finding f;
  f.code = "stuck-in-collective";
  f.confidence = Confidence::medium;
  f.victims = ranks_of(graph, wait.waiters);
  f.subjects = {"group " + group.label};
  std::string call = fmt::format("{} (group {}", describe_call(job, group.members[wait.member], wait.row), group.label);
  if (!wait.p2p) {
    f.subjects.push_back(fmt::format("seq {}", wait.seq));
    call += fmt::format(", seq {}", wait.seq);
  }
  call += ")";
  f.summary = fmt::format("{} {} and agree on it, but it does not end",
                          wait.p2p ? "both sides have posted" : "all members entered", call);
  f.explanation =
      "Nobody is missing and no size, type or order differs, so no rank's program is at fault. What is left is below: "
      "a device, a link, the library. (If the job was still making progress when this was taken, this is what "
      "a healthy run looks like.)\n";
  f.evidence.push_back(call_evidence(job, group, group.members[wait.member], wait.row));
  f.advice = advice_for(group.members[wait.member]);
  if (pairs_unknown(job, wait)) say_pairs_unknown(f, call);
  if (root_unknown(job, wait)) say_root_unknown(f, call);
  if (!done.empty())
    f.explanation += fmt::format("It is complete on {} and not on {}.\n", done.label(8), f.victims.label(8));
  return f;
}

}  // namespace

std::vector<Finding> judge_without_missing(const JobView& job, const CallKeys& keys, const WaitGraph& graph) {
  std::vector<Finding> findings;
  const WaitGraph order = issue_order_graph(job);
  for (const auto& set : cycles(order)) findings.push_back(cycle_finding(job, keys, order, set));
  if (!findings.empty()) return findings;
  const RankSet unseen = unseen_of(graph);
  const Instance& wait = widest(graph);
  RankSet unknown = wait.p2p ? RankSet() : unknown_reach(job.groups[wait.group], wait);
  if (!unseen.empty() && unknown.empty() && !made_by_all(job, wait)) return {silent_ranks(job, graph, unseen)};
  if (members_unknown(job, job.groups[wait.group])) return {unknown_members(job, graph, wait)};
  if (!wait.p2p) {
    if (!unknown.empty()) {
      unknown.insert(unseen);
      return {cannot_tell(job, graph, wait, unknown)};
    }
    const Starts starts = starts_of(job.groups[wait.group], wait);
    if (!starts.started.empty() && !starts.scheduled.empty()) return {device_finding(job, wait, starts)};
  }
  if (auto finding = stuck_finding(job, graph)) findings.push_back(std::move(*finding));
  return findings;
}

}  // namespace ddx::analyzers
