// "Detected mismatch between collectives on ranks": each rank compares itself with the first that differs, so several
// reports together give a vote. Only the sequence numbers unlike, and by far: the checker's own fault.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzers/checker/checker.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

constexpr std::uint64_t kFew = 1'000;          // a rank that skipped or repeated operations is this close
constexpr std::uint64_t kAbsurd = 10'000'000;  // no job counts its collectives up to here apart

struct Reports {
  std::map<RankId, const CollectiveFingerprint*> ranks;
  std::vector<const LogEvent*> events;
};

Reports gather(const Evidence& evidence) {
  Reports reports;
  for (const auto& [event, fact] : seen<WrapperMismatch>(evidence)) {
    reports.events.push_back(event);
    reports.ranks.emplace(fact->reporter.rank, &fact->reporter);
    if (fact->other) reports.ranks.emplace(fact->other->rank, &*fact->other);
  }
  return reports;
}

using Field = std::string (*)(const CollectiveFingerprint&);
using Classes = std::map<std::string, std::vector<RankId>>;

// By value. What is not written of a rank is unknown, not another value: some versions print one side short.
Classes classes_by(const Reports& reports, Field field) {
  Classes classes;
  for (const auto& [rank, print] : reports.ranks) {
    std::string value = field(*print);
    if (!value.empty()) classes[std::move(value)].push_back(rank);
  }
  return classes;
}

RankSet all_of(const Reports& reports) {
  std::vector<RankId> ranks;
  for (const auto& [rank, print] : reports.ranks) ranks.push_back(rank);
  return RankSet(std::move(ranks));
}

std::string describe(const Classes& classes) {
  std::vector<std::string> parts;
  for (const auto& [value, ranks] : classes) {
    parts.push_back(fmt::format("{} on {}", value, RankSet(ranks).label(6)));
  }
  return join_words(parts, 4);
}

Finding start(const Evidence& evidence, const Reports& reports, const char* code) {
  Finding finding;
  finding.code = code;
  for (const LogEvent* event : reports.events) cite(finding, evidence, *event);
  return finding;
}

// The distance between the lowest and the highest sequence number.
std::optional<std::uint64_t> spread(const Reports& reports) {
  std::optional<std::uint64_t> low;
  std::optional<std::uint64_t> high;
  for (const auto& [rank, print] : reports.ranks) {
    if (!print->seq) continue;
    low = std::min(low.value_or(*print->seq), *print->seq);
    high = std::max(high.value_or(*print->seq), *print->seq);
  }
  return low ? std::optional(*high - *low) : std::nullopt;
}

std::string op_of(const CollectiveFingerprint& print) { return print.op_type; }
std::string shape_of(const CollectiveFingerprint& print) { return print.shape; }
std::string dtype_of(const CollectiveFingerprint& print) { return print.dtypes; }
std::string seq_of(const CollectiveFingerprint& print) {
  return print.seq ? std::to_string(*print.seq) : std::string();
}

Finding vote(const Evidence& evidence, const Reports& reports, const char* code, const Classes& classes,
             const char* what) {
  Finding finding = start(evidence, reports, code);
  finding.ranks = minority(classes);
  const RankSet all = all_of(reports);
  finding.victims = all.without(finding.ranks);
  const bool voted = finding.ranks.size() < all.size();
  finding.confidence = voted ? Confidence::high : Confidence::medium;
  const auto seq = reports.ranks.begin()->second->seq;
  if (seq && spread(reports) == 0) finding.subjects.push_back(fmt::format("seq {}", *seq));
  finding.summary = fmt::format("The ranks call {}: {}", what, describe(classes));
  finding.explanation = voted ? "Several ranks reported what they call; the minority differs from all others.\n"
                              : "The message compares two ranks only: which of them is wrong it does not say.\n";
  const auto apart = spread(reports);
  if (apart && *apart > 0 && *apart <= kFew) {
    finding.explanation += fmt::format(
        "They count {} too: the numbers are {} apart, so one side has made more or fewer calls before this one, and "
        "the "
        "first real difference is earlier.\n",
        describe(classes_by(reports, seq_of)), *apart);
  }
  finding.advice =
      "Compare the code paths that lead these ranks to this call; run all ranks with "
      "TORCH_DISTRIBUTED_DEBUG=DETAIL and keep every rank's log.";
  return finding;
}

// The side that is told in most detail.
const CollectiveFingerprint& fullest(const Reports& reports) {
  const auto told = [](const auto& entry) { return !entry.second->shape.empty() && !entry.second->dtypes.empty(); };
  const auto at = std::find_if(reports.ranks.begin(), reports.ranks.end(), told);
  return at == reports.ranks.end() ? *reports.ranks.begin()->second : *at->second;
}

Finding suspect(const Evidence& evidence, const Reports& reports, bool low) {
  Finding finding = start(evidence, reports, "checker-suspect");
  finding.severity = Severity::warning;
  finding.confidence = low ? Confidence::low : Confidence::high;
  finding.victims = all_of(reports);
  const auto apart = spread(reports);
  finding.summary = "The mismatch message is probably false: only the sequence number differs";
  if (apart && *apart > 0) finding.summary += fmt::format(", by {}", format_count(*apart));
  const CollectiveFingerprint& print = fullest(reports);
  finding.explanation = fmt::format(
      "The ranks call the same operation with the same shape, type and device ({} {} {}). A rank that is really out of "
      "step "
      "differs by a few; numbers this far apart are the random start values of a gloo group that were not shared "
      "properly, "
      "which happens at large world sizes. It is not a desync.\n",
      print.op_type, print.shape, print.dtypes);
  const bool short_side = std::any_of(reports.ranks.begin(), reports.ranks.end(),
                                      [](const auto& entry) { return entry.second->shape.empty(); });
  if (short_side && !low)
    finding.explanation += "One side is printed without its shape and type: unknown, not different.\n";
  if (low)
    finding.explanation +=
        "The line is cut before the other rank's half, so this is a guess from the size of the number.\n";
  finding.advice =
      "Use PyTorch 2.1 or later, where gloo groups count from 0, or run without TORCH_DISTRIBUTED_DEBUG=DETAIL.";
  return finding;
}

Finding out_of_step(const Evidence& evidence, const Reports& reports) {
  const Classes classes = classes_by(reports, seq_of);
  Finding finding = start(evidence, reports, "rank-skipped");
  finding.ranks = minority(classes);
  const RankSet all = all_of(reports);
  finding.victims = all.without(finding.ranks);
  finding.confidence = finding.ranks.size() < all.size() ? Confidence::high : Confidence::medium;
  const std::uint64_t apart = spread(reports).value_or(0);
  finding.summary =
      fmt::format("{} {} out of step by {} operation{}: sequence number {}", finding.ranks.label(4),
                  finding.ranks.size() == 1 ? "is" : "are", apart, apart == 1 ? "" : "s", describe(classes));
  finding.explanation = "The call itself is the same, but one side has made fewer or more calls before it.\n";
  if (finding.ranks.size() == all.size())
    finding.explanation += "Two sides of equal size: which one is wrong is open.\n";
  finding.advice = "Look for a branch before this call that only some ranks take.";
  return finding;
}

Finding undecided(const Evidence& evidence, const Reports& reports, const std::string& difference) {
  Finding finding = start(evidence, reports, "inconclusive");
  finding.severity = Severity::info;
  finding.confidence = Confidence::low;
  finding.victims = all_of(reports);
  finding.summary = "A checker reports a mismatch, but the lines here do not show in what";
  finding.explanation = difference.empty() ? "The second half of the message is missing.\n"
                                           : fmt::format("All that is told: {}\n", difference.substr(0, 300));
  finding.advice = "Give the whole message, of several ranks.";
  return finding;
}

std::string first_difference(const Evidence& evidence) {
  for (const auto& [event, fact] : seen<WrapperMismatch>(evidence)) {
    if (!fact->difference.empty()) return fact->difference;
  }
  return {};
}

// One half of one message: only an absurd number on a CPU tensor says anything.
Finding half(const Evidence& evidence, const Reports& reports) {
  const CollectiveFingerprint& print = *reports.ranks.begin()->second;
  const bool on_cpu = contains_text(print.devices, "cpu");
  if (print.seq && *print.seq > kAbsurd && on_cpu) return suspect(evidence, reports, true);
  return undecided(evidence, reports, first_difference(evidence));
}

}  // namespace

std::vector<Finding> judge_wrapper(const Evidence& evidence) {
  const Reports reports = gather(evidence);
  if (reports.ranks.empty()) return {};
  if (reports.ranks.size() == 1) return {half(evidence, reports)};
  if (const Classes ops = classes_by(reports, op_of); ops.size() > 1) {
    return {vote(evidence, reports, "mismatch-type", ops, "different operations")};
  }
  if (const Classes shapes = classes_by(reports, shape_of); shapes.size() > 1) {
    return {vote(evidence, reports, "mismatch-size", shapes, "the same operation with different shapes")};
  }
  if (const Classes types = classes_by(reports, dtype_of); types.size() > 1) {
    return {vote(evidence, reports, "mismatch-dtype", types, "the same operation with different datatypes")};
  }
  const auto apart = spread(reports);
  if (!apart || *apart == 0) return {undecided(evidence, reports, first_difference(evidence))};
  if (*apart <= kFew) return {out_of_step(evidence, reports)};
  if (*apart >= kAbsurd) return {suspect(evidence, reports, false)};
  return {undecided(evidence, reports, first_difference(evidence))};
}

}  // namespace ddx::analyzers
