#include "analyzers/quality/quality.h"

#include <fmt/format.h>

#include <map>

namespace ddx::analyzers {
namespace {

std::optional<Finding> empty_trace(const Evidence& evidence) {
  std::size_t dumps = 0, programs = 0;
  for (const RankRecord& record : evidence.trace.ranks) {
    if (evidence.trace.program(record).size() > 0) return std::nullopt;
    if (record.snapshot) ++dumps;
    if (record.whole_program) ++programs;
  }
  if (dumps == 0) return std::nullopt;
  Finding f;
  f.code = "empty-trace";
  f.severity = evidence.events.empty() ? Severity::error : Severity::warning;
  f.confidence = Confidence::high;
  f.summary = fmt::format("{} no call at all: there is nothing to compare",
                          dumps == 1 ? std::string("1 dump holds") : fmt::format("{} dumps hold", dumps));
  f.explanation =
      "The recorder was on, and no collective was made before the dump, or it ran with a buffer of no entries.\n";
  f.evidence.push_back({evidence.path(evidence.trace.ranks.front().input), std::nullopt, "no entries"});
  if (programs == dumps) {
    f.summary = fmt::format("{} no operation at all: there is nothing to run",
                            dumps == 1 ? std::string("1 program holds") : fmt::format("{} programs hold", dumps));
    f.explanation = "The ranks are named, and nothing says what they do.\n";
    f.evidence.back().text = "no operation";
    f.advice = "Look at what wrote the programs: operations were expected behind the ranks.";
    return f;
  }
  f.advice =
      "Set TORCH_FR_BUFFER_SIZE (older: TORCH_NCCL_TRACE_BUFFER_SIZE) to 2000 or more, and dump while the job hangs.";
  return f;
}

std::optional<Finding> no_rank(const Evidence& evidence) {
  Finding f;
  std::size_t records = 0;
  for (const RankRecord& record : evidence.trace.ranks) {
    if (record.rank || !record.snapshot) continue;
    ++records;
    if (f.evidence.size() < 3)
      f.evidence.push_back({evidence.path(record.input), std::nullopt, "no rank in the file's name"});
  }
  if (records == 0) return std::nullopt;
  f.code = "trace-no-rank";
  f.confidence = Confidence::high;
  f.summary =
      fmt::format("{} dump{} of no known rank: left out of every comparison", records, records == 1 ? " is" : "s are");
  f.explanation = "A flight-recorder dump does not say whose it is; only the file's name can.\n";
  f.advice = "Give the files names with a rank (rank_3), or say where it stands: --rank-from 'node\\d+-(\\d+)\\.dump'.";
  return f;
}

// Each signature is looked at once, not each row.
std::optional<Finding> unknown_ops(const Evidence& evidence) {
  const Trace& trace = evidence.trace;
  std::vector<bool> unknown(trace.signatures().size(), false), call(unknown.size(), false);
  bool any = false;
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    const OpKind kind = trace.signatures()[i].kind;
    unknown[i] = kind == OpKind::unknown;
    call[i] = unknown[i] || is_collective(kind) || is_p2p(kind) || kind == OpKind::coalesced;
    any = any || unknown[i];
  }
  if (!any) return std::nullopt;
  std::map<std::string, std::size_t> calls;
  std::size_t all = 0, rows = 0;
  for (const Program& program : trace.programs) {
    for (std::size_t row = 0; row < program.size(); ++row) {
      if (call[program.signature(row).value]) ++rows;
      if (!unknown[program.signature(row).value]) continue;
      ++all;
      ++calls[std::string(trace.text(trace.signature(program.signature(row)).name))];
    }
  }
  if (all == 0) return std::nullopt;
  Finding f;
  f.code = "trace-unknown-op";
  f.severity = Severity::warning;
  f.confidence = Confidence::high;
  f.summary = fmt::format("{} of {} call{} {} of a kind that ddx does not know: {}", format_count(all),
                          format_count(rows), rows == 1 ? "" : "s", all == 1 ? "is" : "are", calls.begin()->first);
  for (const auto& [name, count] : calls) {
    if (f.subjects.size() < 8) f.subjects.push_back("operation " + name);
    if (f.explanation.size() < 600)
      f.explanation += fmt::format("{}: {} call{}\n", name, format_count(count), count == 1 ? "" : "s");
  }
  f.explanation += "They were matched by name and sequence number; whether their sizes fit is not known.\n";
  f.advice = "If this is an operation of PyTorch or NCCL, tell the developers of ddx its name.";
  return f;
}

std::optional<Finding> time_skew(const Evidence& evidence) {
  Finding f;
  std::size_t bad = 0;
  for (const RankRecord& record : evidence.trace.ranks) {
    const Program& program = evidence.trace.program(record);
    for (std::size_t row = 0; row < program.size(); ++row) {
      const auto issue = program.issue(row), start = program.start(row), end = program.end(row);
      const bool backwards = (start && end && *end < *start) || (issue && end && *end < *issue);
      if (!backwards) continue;
      if (bad++ == 0) {
        f.evidence.push_back(
            {evidence.path(record.input), std::nullopt, fmt::format("entry {} ends before it begins", row)});
      }
    }
  }
  if (bad == 0) return std::nullopt;
  f.code = "trace-time-skew";
  f.severity = Severity::warning;
  f.confidence = Confidence::high;
  f.summary =
      fmt::format("{} call{} before they begin: two clocks are mixed", format_count(bad), bad == 1 ? " ends" : "s end");
  f.explanation = "The calls are kept and matched; their times are used for nothing.\n";
  f.advice = "Nothing to do for a hang. For timings, check the clocks of host and device (NTP, profiler alignment).";
  return f;
}

// A circle of data dependencies cannot have run; one that a control dependency closes is a converter's slip, and the
// order that is left without it is good.
std::optional<Finding> cycles(const Evidence& evidence) {
  if (evidence.cycles.empty()) return std::nullopt;
  Finding f;
  f.code = "trace-cycle";
  f.severity = Severity::warning;
  f.confidence = Confidence::high;
  const DependencyCycle* first = &evidence.cycles.front();
  for (const DependencyCycle& cycle : evidence.cycles) {
    if (!cycle.control && f.severity == Severity::warning) {
      f.severity = Severity::error;
      first = &cycle;
    }
  }
  for (const DependencyCycle& cycle : evidence.cycles) {
    if (cycle.control != first->control) continue;
    std::string text = "nodes";
    for (const std::uint64_t node : cycle.nodes) text += fmt::format(" {} ->", node);
    text += fmt::format(" {}", cycle.nodes.front());
    if (f.subjects.size() < 8) f.subjects.push_back(text);
    if (f.evidence.size() < 3) f.evidence.push_back({evidence.path(cycle.input), std::nullopt, text});
  }
  const std::size_t others = first->nodes.size() - 1;
  std::string circle;
  if (others > 0)
    circle = fmt::format(" waits for {} other{} it", others, others == 1 ? " that waits for" : "s that wait for");
  f.summary = fmt::format("{} depends on itself: node {}{}", evidence.path(first->input), first->nodes.front(), circle);
  if (first->control) {
    f.explanation =
        "A control dependency closes the circle; the data dependencies alone have an order. Converters of PyTorch's "
        "traces write the caller of an operation as such, also where it comes later. They were given up, and the "
        "rest was read.\n";
    f.advice =
        "Nothing to do for ddx. Simulators that take every dependency stop here: convert again with a later version.";
  } else {
    f.explanation =
        "An operation that waits for its own end cannot have run. The circle was cut at its least node, so that the "
        "rest could be read; the order of what depends on it is a guess.\n";
    f.advice = "Mend the dependencies of these nodes, or what wrote them, and read the trace again.";
  }
  return f;
}

}  // namespace

std::vector<Finding> judge_trace_quality(const Evidence& evidence) {
  std::vector<Finding> findings;
  for (auto check : {empty_trace, no_rank, unknown_ops, time_skew, cycles}) {
    if (auto finding = check(evidence)) findings.push_back(std::move(*finding));
  }
  return findings;
}

}  // namespace ddx::analyzers
