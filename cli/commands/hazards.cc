#include "cli/commands/hazards.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "analyzers/analyzer.h"
#include "analyzers/match/job_view.h"
#include "analyzers/match/wait_graph.h"
#include "sim/replay/reference_replay.h"

namespace ddx::cli {
namespace {

using Outcome = sim::ReplayResult::Outcome;

bool any_op(const Trace& trace, bool (*wanted)(const Signature&)) {
  return std::any_of(trace.signatures().begin(), trace.signatures().end(), wanted);
}

bool has_groups(const Trace& trace) {
  return any_op(trace, [](const Signature& s) { return s.kind == OpKind::group_begin; });
}

bool has_streams(const Trace& trace) {
  return any_op(trace, [](const Signature& s) { return s.async; }) ||
         std::any_of(trace.ranks.begin(), trace.ranks.end(), [](const RankRecord& r) { return r.stream_ordered; });
}

Finding hazard(const char* model, const RankSet& ranks) {
  Finding f;
  f.code = "p2p-hazard";
  f.severity = Severity::warning;
  f.confidence = Confidence::high;
  f.ranks = ranks;
  f.subjects = {std::string("model ") + model};
  return f;
}

// "0 -> 2 -> 1 -> 0".
std::string circle_text(const analyzers::WaitGraph& graph, const std::vector<analyzers::CycleStep>& steps) {
  std::string text;
  for (std::size_t i = 0; i < steps.size() && i < 12; ++i) {
    text += fmt::format("{} -> ", graph.ranks[steps[i].rank].value);
  }
  if (steps.size() > 12) text += "... -> ";
  return text + fmt::format("{}", graph.ranks[steps.front().rank].value);
}

// Who waits for whom where groups start only as a whole: what the snapshot shows, and what the groups are held by.
analyzers::WaitGraph strict_waits(const analyzers::JobView& job, const std::vector<sim::HeldGroup>& held) {
  analyzers::WaitGraph graph = analyzers::missing_call_graph(job, {}, {});
  for (const sim::HeldGroup& wait : held) {
    if (!job.known.contains(wait.rank) || !job.known.contains(wait.awaited)) continue;
    analyzers::Instance instance;
    instance.p2p = true;
    instance.waiters = {graph.index_of(wait.rank)};
    instance.missing = {graph.index_of(wait.awaited)};
    analyzers::add_instance(graph, std::move(instance));
  }
  return graph;
}

std::optional<Finding> strict_groups(const Evidence& programs, std::uint64_t snapshot_ops) {
  sim::ReplayOptions options;
  options.snapshot_ops = snapshot_ops;
  options.strict_groups = true;
  sim::ReplayResult result = sim::replay(programs.trace, options);
  if (result.outcome != Outcome::deadlock || result.held.empty()) return std::nullopt;
  Evidence rest;
  rest.inputs = programs.inputs;
  rest.trace = std::move(result.snapshot);
  const auto choices = analyzers::record_choices(rest);
  if (choices.empty()) return std::nullopt;
  const analyzers::JobView job = analyzers::build_job_view(rest, choices.front());
  const analyzers::WaitGraph graph = strict_waits(job, result.held);
  const auto circles = analyzers::cycles(graph);
  if (circles.empty()) return std::nullopt;
  const auto& set = circles.front();
  std::vector<RankId> ranks;
  for (const std::uint32_t rank : set) ranks.push_back(graph.ranks[rank]);
  Finding f = hazard("strict groups", RankSet(std::move(ranks)));
  const std::string circle = circle_text(graph, analyzers::shortest_cycle(graph, set, set.front()));
  f.victims = result.unfinished.without(f.ranks);
  f.summary = fmt::format(
      "it completes where the parts of a group progress singly, and deadlocks where a group starts "
      "only as a whole: {}",
      circle);
  f.explanation = fmt::format(
      "In the lenient model each send and receive of a group goes on as soon as its partner is there. In the strict "
      "one (a group starts only when all its peers are ready) {} wait for each other: {}. Which of the two a library "
      "follows depends on its version, on channels and on sizes.\n",
      f.ranks.label(8), circle);
  f.advice =
      "Split the batch by peer, so that no group waits for a peer that can only come behind another of its parts.";
  return f;
}

// What programs come to in a model in which they deadlock although they complete in the one that was asked for.
struct OtherModel {
  const char* name;
  const char* because;  // they complete only so
  const char* where;    // it is the other way round
};

std::optional<Finding> deadlock_in(const OtherModel& model, const Evidence& programs,
                                   const sim::ReplayOptions& options) {
  sim::ReplayResult result = sim::replay(programs.trace, options);
  if (result.outcome != Outcome::deadlock) return std::nullopt;
  Evidence rest;
  rest.inputs = programs.inputs;
  rest.trace = std::move(result.snapshot);
  for (const Finding& cause : analyzers::analyze(rest)) {
    if (cause.severity != Severity::error || cause.ranks.empty()) continue;
    Finding f = hazard(model.name, cause.ranks);
    f.victims = cause.victims;
    f.evidence = cause.evidence;
    f.summary = fmt::format("it completes only because {}, {}", model.because, cause.summary);
    f.explanation = fmt::format("{}:\n{}", model.where, cause.explanation);
    f.advice = cause.advice;
    return f;
  }
  return std::nullopt;
}

constexpr OtherModel kBlocking{
    "blocking calls", "calls return at once; where each one blocks",
    "With every call blocking until it is complete (NCCL_LAUNCH_MODE, CUDA_LAUNCH_BLOCKING=1, "
    "a backend without streams)"};
constexpr OtherModel kRendezvous{"rendezvous", "sends do not wait for their receives; where they do",
                                 "With every send waiting for its receive (messages above the eager limit, a library "
                                 "without buffers for them)"};

}  // namespace

std::vector<Finding> find_hazards(const Evidence& programs, const sim::ReplayOptions& asked) {
  sim::ReplayOptions options;
  options.snapshot_ops = asked.snapshot_ops;
  options.max_ops = asked.max_ops;
  options.eager_up_to = asked.eager_up_to;
  options.rendezvous = asked.rendezvous;
  std::vector<Finding> findings;
  const auto add = [&findings](std::optional<Finding> finding) {
    if (finding) findings.push_back(std::move(*finding));
  };
  if (has_groups(programs.trace) && !asked.strict_groups) add(strict_groups(programs, asked.snapshot_ops));
  if ((has_streams(programs.trace) || asked.stream_ordered) && !asked.blocking) {
    options.blocking = true;
    add(deadlock_in(kBlocking, programs, options));
    options.blocking = false;
  }
  if (asked.eager_up_to) {
    options.eager_up_to.reset();
    options.stream_ordered = asked.stream_ordered;
    add(deadlock_in(kRendezvous, programs, options));
  }
  return findings;
}

}  // namespace ddx::cli
