// Who is who: two processes with one rank, processes that disagree on the size, a start-up that some never joined.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzers/launch/comm_table.h"
#include "analyzers/launch/launch.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

constexpr std::int64_t kMostPositions = 1'000'000;
constexpr std::size_t kMostTold = 4;

std::string process_label(const CommMember& member) {
  if (member.host.empty() && member.pid == 0) return "an unnamed process";
  return fmt::format("{} pid {}", member.host.empty() ? "?" : member.host, member.pid);
}

// ---- NCCL communicators ---------------------------------------------------------------------------------------------

std::optional<Finding> duplicate_in(const Evidence& evidence, const CommInfo& comm) {
  std::vector<RankId> ranks;
  std::vector<std::string> claims;
  Finding finding;
  for (std::size_t i = 1; i < comm.members.size(); ++i) {
    const CommMember& a = comm.members[i - 1];
    const CommMember& b = comm.members[i];
    if (a.position != b.position || a.process() == b.process() || a.pid == 0 || b.pid == 0) continue;
    ranks.emplace_back(b.position);
    claims.push_back(fmt::format("rank {} by {} and {}", b.position, process_label(a), process_label(b)));
    cite(finding, evidence, *a.event);
    cite(finding, evidence, *b.event);
  }
  if (ranks.empty()) return std::nullopt;
  finding.code = "rank-duplicate";
  finding.confidence = Confidence::high;
  finding.ranks = RankSet(std::move(ranks));
  finding.subjects.push_back("communicator " + comm.id);
  finding.summary = fmt::format("{} {} claimed by two processes: {}", finding.ranks.label(4),
                                finding.ranks.size() == 1 ? "is" : "are", join_words(claims, 2));
  finding.explanation = fmt::format(
      "Both ask to be that rank of one communicator of {} ranks; so another rank is nobody's.\n", comm.nranks);
  finding.advice = "Look at how RANK is computed: a node rank given twice, or a second launcher of the same job.";
  return finding;
}

std::optional<Finding> sizes_differ(const Evidence& evidence, const CommInfo& comm) {
  std::map<std::int64_t, std::vector<RankId>> sizes;
  for (const CommMember& member : comm.members) sizes[member.nranks].emplace_back(member.position);
  if (sizes.size() < 2) return std::nullopt;
  Finding finding;
  finding.code = "world-size-disagree";
  finding.confidence = Confidence::high;
  finding.subjects.push_back("communicator " + comm.id);
  std::vector<std::string> parts;
  for (const auto& [size, ranks] : sizes) {
    parts.push_back(fmt::format("{} by {}", size, RankSet(ranks).label(6)));
  }
  finding.ranks = minority(sizes);
  for (const CommMember& member : comm.members) {
    if (finding.ranks.contains(RankId(member.position))) cite(finding, evidence, *member.event);
  }
  cite(finding, evidence, *comm.members.front().event);
  finding.summary = "The processes do not agree on the size of one communicator: " + join_words(parts);
  finding.explanation = "All bear the same id, so they mean the same communicator.\n";
  finding.advice = "Set one WORLD_SIZE (or --nnodes x --nproc-per-node) for all processes.";
  return finding;
}

struct Arrival {
  RankSet arrived;
  RankSet absent;
  RankSet incomplete;  // started, not completed
  bool any_complete = false;
};

Arrival arrival_of(const CommInfo& comm) {
  Arrival arrival;
  arrival.arrived = comm.positions();
  std::vector<RankId> incomplete;
  for (const CommMember& member : comm.members) {
    if (member.completed) arrival.any_complete = true;
    if (member.started && !member.completed) incomplete.emplace_back(member.position);
  }
  arrival.incomplete = RankSet(std::move(incomplete));
  if (comm.nranks > 0 && comm.nranks <= kMostPositions) {
    arrival.absent = RankSet::range(RankId(0), RankId(comm.nranks - 1)).without(arrival.arrived);
  }
  return arrival;
}

Finding init_finding(const Evidence& evidence, const CommInfo& comm, const char* code) {
  Finding finding;
  finding.code = code;
  finding.confidence = Confidence::low;
  finding.subjects.push_back("communicator " + comm.id);
  for (const CommMember& member : comm.members) {
    if (member.started && !member.completed) cite(finding, evidence, *member.event);
  }
  return finding;
}

// Members started and did not complete.
std::optional<Finding> hang_in(const Evidence& evidence, const CommInfo& comm, const RankSet& heard) {
  const Arrival arrival = arrival_of(comm);
  if (arrival.incomplete.empty() || comm.nranks > kMostPositions) return std::nullopt;
  Finding finding = init_finding(evidence, comm, "init-hang");
  if (comm.positions_are_ranks) finding.victims = arrival.incomplete;
  if (arrival.absent.empty()) {
    const bool none_done = !arrival.any_complete;
    finding.severity = none_done ? Severity::error : Severity::warning;
    finding.confidence = none_done ? Confidence::medium : Confidence::low;
    finding.summary =
        none_done ? fmt::format("All {} members began to make a communicator and none completed it", comm.nranks)
                  : fmt::format("{} of a communicator of {} began its start and did not complete it",
                                arrival.incomplete.label(4), comm.nranks);
    finding.explanation =
        none_done ? "Nobody is absent: look at how they reach each other (interfaces, firewall, adapters).\n"
                  : "The others completed: the lines of these may be lost, or they hang behind them.\n";
    finding.advice =
        "Run with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,NET, and take a stack of each process.";
    return finding;
  }
  if (arrival.any_complete) return std::nullopt;  // a complete member proves that all came: lines are lost
  const RankSet known_absent = comm.positions_are_ranks ? arrival.absent.common(heard) : RankSet{};
  const bool all_heard = comm.positions_are_ranks && known_absent == arrival.absent;
  const bool few = arrival.absent.size() * 2 < static_cast<std::size_t>(comm.nranks);
  if (comm.positions_are_ranks && (all_heard || few)) {
    finding.ranks = arrival.absent;
    finding.confidence = all_heard ? Confidence::high : Confidence::medium;
  }
  const char* noun = comm.positions_are_ranks ? "ranks" : "positions";
  finding.summary =
      fmt::format("The start of a communicator hangs: {} of {} came ({} {}); {} {} did not", arrival.arrived.size(),
                  comm.nranks, noun, arrival.arrived.text(4), noun, arrival.absent.text(4));
  finding.explanation = "Those that came wait until all have come.\n";
  finding.explanation += all_heard
                             ? "The absent ones have other lines here, so their logs were collected.\n"
                             : "No line of the absent is here: they did not come, or their logs were not collected.\n";
  finding.advice =
      fmt::format("Look at the logs of {} {}, and whether those processes exist.", noun, arrival.absent.text(8));
  return finding;
}

// ---- splits ---------------------------------------------------------------------------------------------------------

struct SplitCall {
  const LogEvent* event;
  const CommInit* fact;
};

std::optional<Finding> split_mismatch(
    const Evidence& evidence, const CommInfo& parent,
    const std::map<std::pair<std::string, std::string>, std::string>& comm_of_pointer) {
  std::map<std::int64_t, std::map<std::int64_t, SplitCall>>
      calls;  // position in the parent -> child count -> first line
  std::map<std::pair<std::string, std::int64_t>, std::int64_t> position;
  for (const CommMember& member : parent.members) position[member.process()] = member.position;
  for (const auto& [event, fact] : seen<CommInit>(evidence)) {
    if (fact->parent.empty() || !fact->child_count) continue;
    const std::string process = fmt::format("{}:{}", event->host, event->pid.value_or(0));
    const auto of = comm_of_pointer.find({process, fact->parent});
    const auto at = position.find({event->host, event->pid.value_or(0)});
    if (of == comm_of_pointer.end() || of->second != parent.id || at == position.end()) continue;
    calls[at->second].emplace(*fact->child_count, SplitCall{event, fact});
  }
  if (calls.size() < 2) return std::nullopt;
  // The last split of each member: whoever stands at an earlier one did not take part in the later one.
  std::map<std::int64_t, std::vector<RankId>> last;
  for (const auto& [at, own] : calls) last[own.rbegin()->first].emplace_back(at);
  const auto hangs = [&calls](std::int64_t at) { return !calls[at].rbegin()->second.fact->complete; };
  const bool begun_only = std::any_of(last.rbegin()->second.begin(), last.rbegin()->second.end(),
                                      [&hangs](RankId at) { return hangs(at.value); });
  if (last.size() < 2 || !begun_only) return std::nullopt;
  std::vector<RankId> behind;
  for (auto at = last.begin(); std::next(at) != last.end(); ++at)
    behind.insert(behind.end(), at->second.begin(), at->second.end());
  const RankSet odd(behind);
  const RankSet ahead(last.rbegin()->second);
  Finding finding;
  finding.code = "split-mismatch";
  finding.confidence = Confidence::medium;
  finding.subjects = {"communicator " + parent.id, fmt::format("split {}", last.rbegin()->first)};
  if (parent.positions_are_ranks) {
    finding.ranks = odd.size() <= ahead.size() ? odd : ahead;
    finding.victims = odd.size() <= ahead.size() ? ahead : odd;
  }
  finding.summary =
      fmt::format("The members of a communicator split it a different number of times: {} at split {}, {} not",
                  ahead.text(4), last.rbegin()->first, odd.text(4));
  finding.explanation =
      "A split is a collective of the parent: all its members must call it, with a colour or with none.\n";
  finding.advice = "Look for the branch in which these ranks make (or leave out) a communicator.";
  for (RankId at : ahead) cite(finding, evidence, *calls[at.value].rbegin()->second.event);
  for (RankId at : odd) cite(finding, evidence, *calls[at.value].rbegin()->second.event);
  return finding;
}

std::map<std::pair<std::string, std::string>, std::string> pointers(const Evidence& evidence) {
  std::map<std::pair<std::string, std::string>, std::string> ids;
  for (const auto& [event, fact] : seen<CommInit>(evidence)) {
    if (fact->comm_id.empty()) continue;
    ids[{fmt::format("{}:{}", event->host, event->pid.value_or(0)), fact->comm}] = fact->comm_id;
  }
  return ids;
}

// ---- NCCL's own words -----------------------------------------------------------------------------------------------

std::optional<Finding> by_bootstrap_duplicate(const Evidence& evidence) {
  const auto lines = seen<BootstrapDuplicate>(evidence);
  if (lines.empty()) return std::nullopt;
  Finding finding;
  finding.code = "rank-duplicate";
  finding.confidence = Confidence::high;
  for (const auto& [event, fact] : lines) {
    finding.ranks.insert(fact->rank);
    cite(finding, evidence, *event);
  }
  finding.summary = fmt::format("{} checked in twice: two processes claim it", finding.ranks.label(4));
  finding.explanation = fmt::format("NCCL's root expects each of {} ranks once.\n", lines.front().fact->nranks);
  finding.advice = "Look at how RANK is computed: a node rank given twice, or a second launcher of the same job.";
  return finding;
}

std::optional<Finding> by_bootstrap_size(const Evidence& evidence) {
  const auto lines = seen<BootstrapSizeMismatch>(evidence);
  if (lines.empty()) return std::nullopt;
  Finding finding;
  finding.code = "world-size-disagree";
  finding.confidence = Confidence::high;
  for (const auto& [event, fact] : lines) cite(finding, evidence, *event);
  finding.subjects.push_back(fmt::format("sizes {} and {}", lines.front().fact->nranks, lines.front().fact->other));
  finding.summary = fmt::format("The processes do not agree on the world size: {} against {}",
                                lines.front().fact->nranks, lines.front().fact->other);
  finding.explanation =
      "NCCL's root compares what each process says. The line does not tell which process says which.\n";
  finding.advice = "Compare WORLD_SIZE (or --nnodes x --nproc-per-node) on all nodes.";
  return finding;
}

// "Invalid rank requested : 8/8"
std::optional<Finding> by_invalid_rank(const Evidence& evidence) {
  for (const auto& [event, fact] : seen<NcclWarning>(evidence)) {
    const auto at = fact->text.find("Invalid rank requested");
    if (at == std::string::npos) continue;
    long long rank = 0;
    long long size = 0;
    const auto colon = fact->text.find(':', at);
    if (colon == std::string::npos || std::sscanf(fact->text.c_str() + colon + 1, "%9lld/%9lld", &rank, &size) != 2)
      continue;
    Finding finding;
    finding.code = "rank-range";
    finding.confidence = Confidence::high;
    finding.ranks.insert(RankId(std::int64_t{rank}));
    finding.summary = fmt::format("Rank {} cannot be in a communicator of {} (ranks 0-{})", rank, size, size - 1);
    finding.explanation = "NCCL refused it.\n";
    finding.advice = "Look at how the rank is computed: ranks are counted from 0.";
    cite(finding, evidence, *event);
    return finding;
  }
  return std::nullopt;
}

// ---- dumps ----------------------------------------------------------------------------------------------------------

struct Span {
  Nanos first = 0;
  Nanos last = 0;
};

std::optional<Span> span_of(const Evidence& evidence, const RankRecord& record) {
  const Program& program = evidence.trace.program(record);
  std::optional<Span> span;
  for (std::size_t row = 0; row < program.size(); ++row) {
    const auto issue = program.issue(row);
    if (!issue) continue;
    if (!span) span = Span{*issue, *issue};
    span->first = std::min(span->first, *issue);
    span->last = std::max(span->last, *issue);
  }
  return span;
}

// Two dumps of one process share entries: same group and number, same moment. Two processes do not.
bool one_process(const Evidence& evidence, const RankRecord& a, const RankRecord& b) {
  if (!a.host.empty() && !b.host.empty() && a.pid && b.pid) return a.host == b.host && a.pid == b.pid;
  const Program& left = evidence.trace.program(a);
  const Program& right = evidence.trace.program(b);
  std::set<std::pair<std::uint32_t, Nanos>> moments;
  for (std::size_t row = 0; row < left.size(); ++row) {
    const auto seq = left.seq(row);
    const auto issue = left.issue(row);
    if (seq && issue) moments.insert({*seq, *issue});
  }
  if (moments.empty()) return true;  // without times nothing proves that they differ
  bool timed = false;
  for (std::size_t row = 0; row < right.size(); ++row) {
    const auto seq = right.seq(row);
    const auto issue = right.issue(row);
    if (!seq || !issue) continue;
    timed = true;
    if (moments.count({*seq, *issue}) > 0) return true;
  }
  return !timed;
}

using Records = std::map<RankId, std::vector<const RankRecord*>>;

// As many dumps as the world has ranks, but numbered 0..W/n-1 n times over, each time in a folder of its own: the names
// hold local ranks, and whose the dumps are nobody can tell from them.
std::optional<Finding> numbered_on_each_node(const Evidence& evidence, const Records& records) {
  const auto world = stated_world_size(evidence);
  if (!world || records.empty() || records.begin()->first.value != 0) return std::nullopt;
  const std::size_t copies = records.begin()->second.size();
  if (copies < 2 || records.size() * copies != *world ||
      records.rbegin()->first.value != std::int64_t(records.size()) - 1)
    return std::nullopt;
  Finding finding;
  for (const auto& [rank, own] : records) {
    std::set<std::string> folders;
    for (const RankRecord* record : own) {
      const std::string path = evidence.path(record->input);
      folders.insert(path.substr(0, path.find_last_of('/')));
      if (rank.value == 0 && finding.evidence.size() < kMostTold)
        finding.evidence.push_back({path, std::nullopt, "a dump of rank 0 by its name"});
    }
    if (own.size() != copies || folders.size() != copies) return std::nullopt;
  }
  finding.code = "trace-no-rank";
  finding.confidence = Confidence::medium;
  finding.summary =
      fmt::format("The dumps are numbered 0-{} on each of {} nodes: these are local ranks, not ranks of {}",
                  records.size() - 1, copies, *world);
  finding.explanation =
      "A dump does not say whose it is; only the file's name can. What else is said of ranks here is not to be "
      "trusted.\n";
  finding.advice = fmt::format(
      "Give each file its global rank (with nodes in order: node number x {} + local rank), and analyze again.",
      records.size());
  return finding;
}

std::optional<Finding> two_dumps(const Evidence& evidence) {
  Records records;
  for (const RankRecord& record : evidence.trace.ranks) {
    if (record.snapshot && record.rank && !record.rank_guessed) records[*record.rank].push_back(&record);
  }
  Finding finding;
  std::vector<std::string> claims;
  for (const auto& [rank, own] : records) {
    for (std::size_t i = 1; i < own.size(); ++i) {
      // A process that restarted gives a later dump, not a second claim at the same time.
      const auto a = span_of(evidence, *own[i - 1]);
      const auto b = span_of(evidence, *own[i]);
      const bool apart = a && b && (a->last < b->first || b->last < a->first);
      const bool other_backend = own[i - 1]->backend != own[i]->backend;
      if (apart || other_backend || own[i - 1]->attempt != own[i]->attempt ||
          one_process(evidence, *own[i - 1], *own[i])) {
        continue;
      }
      finding.ranks.insert(rank);
      claims.push_back(fmt::format("{} and {}", evidence.path(own[i - 1]->input), evidence.path(own[i]->input)));
      finding.evidence.push_back(
          {evidence.path(own[i - 1]->input), std::nullopt, fmt::format("a dump of rank {}", rank.value)});
      finding.evidence.push_back(
          {evidence.path(own[i]->input), std::nullopt, fmt::format("another dump of rank {}", rank.value)});
    }
  }
  if (finding.ranks.empty()) return std::nullopt;
  if (auto local = numbered_on_each_node(evidence, records)) return local;
  finding.code = "rank-duplicate";
  finding.confidence = Confidence::medium;
  if (finding.evidence.size() > 2 * kMostTold) finding.evidence.resize(2 * kMostTold);
  finding.summary =
      fmt::format("Two processes at the same time were {}: {}", finding.ranks.label(4), join_words(claims, 2));
  finding.explanation = "The dumps cover the same time and share no entry, so they are not two dumps of one process.\n";
  finding.advice = "See whether the files are of one job; if so, look at how RANK is computed.";
  return finding;
}

std::optional<Finding> dumps_disagree(const Evidence& evidence) {
  std::map<std::size_t, std::vector<RankId>> sizes;
  for (const RankRecord& record : evidence.trace.ranks) {
    if (!record.snapshot || !record.rank) continue;
    for (CommId id : record.comms) {
      const Communicator& comm = evidence.trace.communicator(id);
      const std::string_view name = evidence.trace.text(comm.name);
      if (comm.synthesized || name.empty() || !is_default_group(name)) continue;
      const std::size_t size = comm.size();
      if (size == 0) continue;
      sizes[size].push_back(*record.rank);
      break;
    }
  }
  if (sizes.size() < 2) return std::nullopt;
  Finding finding;
  finding.code = "world-size-disagree";
  finding.confidence = Confidence::high;
  std::vector<std::string> parts;
  for (const auto& [size, ranks] : sizes) {
    parts.push_back(fmt::format("{} by {}", size, RankSet(ranks).label(6)));
  }
  finding.ranks = minority(sizes);
  finding.summary = "The dumps do not agree on the world size: " + join_words(parts);
  finding.explanation = "Each dump lists the members of the default group; those lists must be equal.\n";
  finding.advice = "Set one WORLD_SIZE for all processes, and see that the dumps are of one job.";
  for (const RankRecord& record : evidence.trace.ranks) {
    if (!record.snapshot || !record.rank || !finding.ranks.contains(*record.rank)) continue;
    if (finding.evidence.size() >= 2 * kMostTold) break;
    finding.evidence.push_back({evidence.path(record.input), std::nullopt, fmt::format("rank {}", record.rank->value)});
  }
  return finding;
}

void append(std::vector<Finding>& findings, std::optional<Finding> finding) {
  if (!finding) return;
  // NCCL's word and our own reading of the INIT lines are of one fault.
  for (const Finding& other : findings) {
    if (other.code == finding->code) return;
  }
  findings.push_back(std::move(*finding));
}

}  // namespace

std::vector<Finding> judge_identity(const Evidence& evidence) {
  std::vector<Finding> findings;
  const std::vector<CommInfo> comms = comm_table(evidence);
  for (const CommInfo& comm : comms) {
    append(findings, duplicate_in(evidence, comm));
    append(findings, sizes_differ(evidence, comm));
  }
  append(findings, by_bootstrap_duplicate(evidence));
  append(findings, by_bootstrap_size(evidence));
  append(findings, by_invalid_rank(evidence));
  append(findings, two_dumps(evidence));
  append(findings, dumps_disagree(evidence));
  // A start-up that hangs is the consequence of any of these.
  if (!findings.empty()) return findings;
  const auto ids = pointers(evidence);
  for (const CommInfo& comm : comms) append(findings, split_mismatch(evidence, comm, ids));
  if (!findings.empty()) return findings;
  // So it is of two ranks on one device: NCCL refuses, and who warns of it has come.
  if (!seen<DeviceDuplicate>(evidence).empty()) return findings;
  const RankSet heard = spoken_ranks(evidence);
  for (const CommInfo& comm : comms) append(findings, hang_in(evidence, comm, heard));
  return findings;
}

}  // namespace ddx::analyzers
