#include "analyzers/scaling/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/units.h"

namespace ddx::analyzers {
namespace {

constexpr double kFlat = 1.05;      // less is no gain
constexpr double kNegative = 0.98;  // less is a loss
constexpr double kMoreGpus = 1.25;  // from here on a gain is expected
constexpr double kSuper = 1.05;     // efficiency above it wants an explanation
constexpr double kGoodFit = 0.03;
constexpr double kTolerance = 1.08;  // what rounding and units (2^30 against 10^9) explain

bool positive(const std::optional<double>& value) { return value && *value > 0; }

std::string sized(const ScalingAnswer& answer, std::uint64_t size) {
  return fmt::format("{} {}{}", format_count(size), answer.size_word, size == 1 ? "" : "s");
}

std::string nodes_of(std::uint64_t nodes) {
  return fmt::format("{} node{}", format_count(nodes), nodes == 1 ? "" : "s");
}

// What a row does in a second; nullopt where its values cannot be.
std::optional<double> rate_of(const ScalingTable& table, const ScalingRun& run) {
  for (const auto& value : {run.rate, run.work_seconds, run.step_seconds}) {
    if (value && *value <= 0) return std::nullopt;
  }
  if (run.rate) return *run.rate;
  if (run.work_seconds) return 1 / *run.work_seconds;
  return (table.fixed_batch ? 1 : static_cast<double>(run.gpus)) / *run.step_seconds;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

ScalingPoint point_of(const ScalingTable& table, const std::vector<const ScalingRun*>& runs) {
  const auto rate_in_table = [&](const ScalingRun& run) { return rate_of(table, run); };
  const auto middle = [&](auto value_of) -> std::optional<double> {
    std::vector<double> values;
    for (const ScalingRun* run : runs) {
      if (const std::optional<double> value = value_of(*run)) values.push_back(*value);
    }
    return values.empty() ? std::nullopt : std::optional(median(std::move(values)));
  };
  ScalingPoint point;
  point.line = runs.front()->line;
  point.rows = runs.size();
  point.gpus = runs.front()->gpus;
  point.nodes = runs.front()->nodes;
  point.rate = *middle(rate_in_table);
  double least = point.rate, most = point.rate;
  for (const ScalingRun* run : runs) {
    least = std::min(least, *rate_of(table, *run));
    most = std::max(most, *rate_of(table, *run));
  }
  point.spread = (most - least) / point.rate;
  point.work_seconds = middle([](const ScalingRun& run) { return run.work_seconds; });
  point.step_seconds = middle([](const ScalingRun& run) { return run.step_seconds; });
  point.link_bytes = middle([](const ScalingRun& run) { return run.link_bytes; });
  point.gradient_bytes = middle([](const ScalingRun& run) { return run.gradient_bytes; });
  point.steps = middle([](const ScalingRun& run) { return run.steps; });
  return point;
}

// Whatever the algorithm, a node sends at least the gradients' bytes once where several nodes reduce them.
std::string too_fast(const ScalingRun& run) {
  if (!positive(run.link_bytes) || !positive(run.gradient_bytes) || run.nodes.value_or(1) < 2) return "";
  std::optional<double> step = run.step_seconds;
  if (!step && run.work_seconds && positive(run.steps)) step = *run.work_seconds / *run.steps;
  const double least = *run.gradient_bytes / *run.link_bytes;
  if (!step || *step * kTolerance >= least) return "";
  return fmt::format(
      "a step of {:.3g} s, in which {} MB of gradients cannot pass a link of {} GB/s ({:.3g} s at least), "
      "unless a node has several links, gradients are compressed, or not every step reduces them",
      *step, figure(*run.gradient_bytes / 1e6), figure(*run.link_bytes / 1e9), least);
}

// Of the rows that can be.
std::vector<ScalingPoint> points_of(const ScalingTable& table) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<const ScalingRun*>> sizes;
  for (const ScalingRun& run : table.runs) {
    if (rate_of(table, run) && too_fast(run).empty()) sizes[{run.gpus, run.nodes.value_or(0)}].push_back(&run);
  }
  std::vector<ScalingPoint> points;
  for (const auto& [size, runs] : sizes) points.push_back(point_of(table, runs));
  for (ScalingPoint& point : points) {
    const ScalingPoint& base = points.front();
    point.speedup = point.rate / base.rate;
    point.efficiency = point.speedup * static_cast<double>(base.gpus) / static_cast<double>(point.gpus);
  }
  return points;
}

bool only_steps(const ScalingTable& table) {
  return table.per_step && std::all_of(table.runs.begin(), table.runs.end(), [](const ScalingRun& run) {
           return run.step_seconds && !run.rate && !run.work_seconds;
         });
}

double best_efficiency(const std::vector<ScalingPoint>& points) {
  double best = 0;
  for (const ScalingPoint& point : points) best = std::max(best, point.efficiency);
  return best;
}

void add_cost(const ScalingTable& table, ScalingAnswer& answer) {
  const bool work = std::all_of(answer.points.begin(), answer.points.end(),
                                [](const ScalingPoint& point) { return point.work_seconds.has_value(); });
  if (table.counts_nodes || (!work && answer.unit.empty())) return;
  answer.gpu_hours_of = work ? "the work" : "1 M " + answer.unit;
  for (ScalingPoint& point : answer.points) {
    const double seconds = work ? *point.work_seconds : 1e6 / point.rate;
    point.gpu_hours = seconds * static_cast<double>(point.gpus) / 3600;
  }
}

// ---- words -------------------------------------------------------------------------------------------------------

// "880 to 1,280 samples a second", "36 min to 1 h 45 min".
std::string change(const ScalingAnswer& answer, const ScalingPoint& a, const ScalingPoint& b) {
  if (!answer.unit.empty()) return fmt::format("{} to {} {} a second", figure(a.rate), figure(b.rate), answer.unit);
  const auto time = [](double seconds) { return format_duration(static_cast<Nanos>(std::min(seconds, 9e9) * 1e9)); };
  if (a.work_seconds && b.work_seconds) return fmt::format("{} to {}", time(*a.work_seconds), time(*b.work_seconds));
  return fmt::format("{} to {} a step", time(*a.step_seconds), time(*b.step_seconds));
}

// "2x the GPUs take 2.92x the time". Efficiency is against the smallest size, and so no word for two neighbours.
std::string ratio_text(const ScalingAnswer& answer, const ScalingPoint& a, const ScalingPoint& b) {
  const double size = static_cast<double>(b.gpus) / static_cast<double>(a.gpus);
  if (a.work_seconds && b.work_seconds && answer.unit.empty()) {
    return fmt::format("{}x the {}s take {:.2f}x the time", figure(size), answer.size_word,
                       *b.work_seconds / *a.work_seconds);
  }
  return fmt::format("{}x the {}s do {:.2f}x the work", figure(size), answer.size_word, b.rate / a.rate);
}

bool crosses(const ScalingPoint& a, const ScalingPoint& b) { return a.nodes && b.nodes && *a.nodes < *b.nodes; }

std::string from_to(const ScalingAnswer& answer, const ScalingPoint& a, const ScalingPoint& b) {
  std::string text = fmt::format("From {} to {}", format_count(a.gpus), sized(answer, b.gpus));
  if (crosses(a, b)) text += fmt::format(" ({} to {})", format_count(*a.nodes), nodes_of(*b.nodes));
  return text;
}

Finding finding(const ScalingTable& table, std::string_view code, Severity severity, const ScalingPoint& at) {
  Finding f;
  f.code = code;
  f.severity = severity;
  f.confidence = at.rows > 1 ? Confidence::high : Confidence::medium;
  f.evidence.push_back(
      {table.path, at.line, fmt::format("the row{} of size {}", at.rows > 1 ? "s" : "", format_count(at.gpus))});
  return f;
}

// ---- what the table says -----------------------------------------------------------------------------------------

ScalingTable with_batch_per_gpu(ScalingTable table) {
  table.fixed_batch = false;
  return table;
}

// Index of the point behind the largest loss of efficiency between neighbours; 0: none.
std::size_t largest_loss(const std::vector<ScalingPoint>& points) {
  std::size_t at = 0;
  double least = 0.99;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const double kept = points[i].efficiency / points[i - 1].efficiency;
    if (kept < least) {
      least = kept;
      at = i;
    }
  }
  return at;
}

// Time per unit and GPU within a node as t1 + slope * (n-1)/n, which is how the bytes of a ring grow.
struct Fit {
  double alone = 0, slope = 0, worst = 0;  // seconds; worst residual over the value
};
std::optional<Fit> fit_of(const std::vector<const ScalingPoint*>& points) {
  if (points.size() < 3) return std::nullopt;
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  const auto at = [](const ScalingPoint& p) {
    const auto gpus = static_cast<double>(p.gpus);
    return std::array{(gpus - 1) / gpus, gpus / p.rate};
  };
  for (const ScalingPoint* point : points) {
    const auto [px, py] = at(*point);
    n += 1, x += px, y += py, xx += px * px, xy += px * py;
  }
  const double spread = n * xx - x * x;
  if (spread <= 1e-12) return std::nullopt;
  Fit fit;
  fit.slope = (n * xy - x * y) / spread;
  fit.alone = (y - fit.slope * x) / n;
  for (const ScalingPoint* point : points) {
    const auto [px, py] = at(*point);
    fit.worst = std::max(fit.worst, std::abs(fit.alone + fit.slope * px - py) / py);
  }
  return fit;
}

std::vector<const ScalingPoint*> inside_a_node(const std::vector<ScalingPoint>& points) {
  std::vector<const ScalingPoint*> inside;
  for (const ScalingPoint& point : points) {
    if (point.nodes == 1U) inside.push_back(&point);
  }
  return inside;
}

std::string fit_text(const ScalingAnswer& answer) {
  const auto inside = inside_a_node(answer.points);
  const auto fit = fit_of(inside);
  if (!fit || fit->worst > kGoodFit || fit->alone <= 0 || fit->slope < 0) return "";
  std::string text = fmt::format(
      "Within a node the time a GPU needs grows as a ring's bytes do, by (n-1)/n of {:.0f} % of that of one GPU "
      "(fitted, "
      "worst residual {:.1f} %).\n",
      100 * fit->slope / fit->alone, 100 * fit->worst);
  const auto outside = std::find_if(answer.points.begin(), answer.points.end(),
                                    [](const ScalingPoint& point) { return point.nodes.value_or(1) > 1; });
  if (outside == answer.points.end()) return text;
  const auto gpus = static_cast<double>(outside->gpus);
  const double kept = (fit->alone + fit->slope * (gpus - 1) / gpus) / (gpus / outside->rate);
  if (kept < 0.97) {
    text += fmt::format("That does not lead over the border of the node: beyond it {:.0f} % more is lost.\n",
                        100 * (1 - kept));
  }
  return text;
}

std::string efficiencies(const ScalingAnswer& answer) {
  std::string text = fmt::format("Efficiency against {}: ", sized(answer, answer.points.front().gpus));
  for (std::size_t i = 1; i < answer.points.size(); ++i) {
    text += fmt::format("{}{:.3f} on {}", i == 1 ? "" : ", ", answer.points[i].efficiency,
                        format_count(answer.points[i].gpus));
  }
  return text + ".\n";
}

// What twice the nodes of the largest row can give at most.
std::string at_best(const ScalingAnswer& answer) {
  const ScalingPoint& last = answer.points.back();
  if (last.nodes.value_or(1) < 2 || answer.unit.empty() || last.gpus % *last.nodes != 0) return "";
  return fmt::format("Twice the nodes at the same rate per GPU: {} x {} = {} {} a second at best.\n", *last.nodes * 2,
                     last.gpus / *last.nodes, figure(last.rate * 2), answer.unit);
}

Finding what_it_says(const ScalingTable& table, const ScalingAnswer& answer) {
  const ScalingPoint &base = answer.points.front(), &last = answer.points.back();
  Finding f = finding(table, "scaling", Severity::info, last);
  f.summary = fmt::format("{} do {:.2f}x the work of {}: efficiency {:.3f}", sized(answer, last.gpus), last.speedup,
                          format_count(base.gpus), last.efficiency);
  if (table.fixed_batch) f.summary += ", if the batch of the whole job stayed the same (strong scaling)";
  f.explanation = efficiencies(answer);
  if (const std::size_t at = largest_loss(answer.points); at > 0) {
    const ScalingPoint &a = answer.points[at - 1], &b = answer.points[at];
    f.explanation += fmt::format("Most is lost in one place. {}: {}, {:.2f}x for {}x.\n", from_to(answer, a, b),
                                 change(answer, a, b), b.rate / a.rate,
                                 figure(static_cast<double>(b.gpus) / static_cast<double>(a.gpus)));
    const bool border = a.nodes == 1U && b.nodes.value_or(1) > 1;
    if (border) f.explanation += "That step is at the border of a node: from there on the job needs the network.\n";
    f.summary += border ? "; most is lost at the border of the node"
                        : fmt::format("; most is lost between {} and {}", format_count(a.gpus), format_count(b.gpus));
  }
  f.explanation += fit_text(answer) + at_best(answer);
  f.advice = "Look at what a step waits for at the size where most is lost (ddx analyze on a trace of it).";
  return f;
}

// ---- what it does not settle -------------------------------------------------------------------------------------

std::string about_the_border(const ScalingAnswer& answer) {
  const std::vector<ScalingPoint>& points = answer.points;
  const bool known =
      std::all_of(points.begin(), points.end(), [](const ScalingPoint& p) { return p.nodes.has_value(); });
  if (!known) {
    return "The table does not say how many nodes a row used: what is lost inside of a node and what at its border "
           "cannot be told apart. A column \"nodes\" or \"gpus_per_node\" would.\n";
  }
  const ScalingPoint& last = points.back();
  if (*last.nodes > 1) {
    const auto beyond = std::count_if(points.begin(), points.end(), [](const ScalingPoint& p) { return *p.nodes > 1; });
    if (beyond > 1) return "";
    return "One row alone lies beyond the border of a node: it does not tell how the loss grows with more nodes.\n";
  }
  std::string text = fmt::format(
      "No row uses more than one node, and there is no figure of the network: a prediction for "
      "2 nodes ({}) is refused. ",
      sized(answer, last.gpus * 2));
  if (answer.unit.empty())
    return text + "At best it does twice the work of one; how much less is not in these figures.\n";
  return text +
         fmt::format("At best it is {} {} a second, twice that of one node; how much less is not in these figures.\n",
                     figure(last.rate * 2), answer.unit);
}

std::string about_the_rows(const ScalingTable& table, const ScalingAnswer& answer) {
  std::string text;
  if (table.fixed_batch) {
    text += fmt::format(
        "Steps are counted, and what a step holds is not given. If every GPU kept its batch, the efficiency would be "
        "{:.2f}, which cannot be: the times are read as those of the same work, a batch of the whole job that stays as "
        "it is (strong scaling). A column global_batch or batch_per_gpu settles it.\n",
        best_efficiency(points_of(with_batch_per_gpu(table))));
  } else if (table.per_step && answer.unit.empty()) {
    text +=
        "Steps are counted, and what a step holds is not given. Here every GPU keeps its batch as GPUs are added; if "
        "the batch of the whole job stayed the same, compare the times of a step as those of the same work.\n";
  }
  const auto repeated =
      std::find_if(answer.points.begin(), answer.points.end(), [](const ScalingPoint& p) { return p.rows > 1; });
  if (repeated == answer.points.end()) {
    text += "Each size was run once: differences of a few per cent may be chance.\n";
  } else {
    const auto widest =
        std::max_element(answer.points.begin(), answer.points.end(),
                         [](const ScalingPoint& a, const ScalingPoint& b) { return a.spread < b.spread; });
    text += fmt::format("Runs of one size differ by up to {:.1f} % (at {}): smaller differences say nothing.\n",
                        100 * widest->spread, sized(answer, widest->gpus));
  }
  for (const ScalingPoint& point : answer.points) {
    if (point.efficiency <= kSuper) continue;
    text += fmt::format(
        "Efficiency {:.2f} at {} is above 1: the smallest run may have been held up by something else "
        "(memory, input), or the rows differ in more than their size.\n",
        point.efficiency, sized(answer, point.gpus));
    break;
  }
  return text;
}

std::optional<Finding> what_is_open(const ScalingTable& table, const ScalingAnswer& answer) {
  const std::string border = about_the_border(answer);
  const ScalingPoint& last = answer.points.back();
  Finding f = finding(table, "scaling-info", Severity::info, last);
  f.confidence = Confidence::high;
  f.explanation = border + about_the_rows(table, answer);
  if (f.explanation.empty()) return std::nullopt;
  f.summary = "What the table does not settle: " + std::string(last.nodes == 1U ? "what happens beyond one node"
                                                               : border.empty() ? "how far to trust small differences"
                                                               : last.nodes     ? "how the loss grows with more nodes"
                                                                                : "where the loss arises");
  f.advice = last.nodes == 1U ? "Measure 2 nodes once, or give a figure of the network."
             : border.empty() ? "Run each size three times and give all rows."
             : last.nodes     ? fmt::format("Measure {} nodes.", *last.nodes * 2)
                              : "Add a column nodes.";
  return f;
}

// ---- losses ------------------------------------------------------------------------------------------------------

// How much of the time the transfer of gradients over the nodes' links explains, by the figures given.
std::string decomposition(const ScalingPoint& base, const ScalingPoint& point) {
  if (!positive(point.link_bytes) || !positive(point.gradient_bytes) || point.nodes.value_or(1) < 2) return "";
  const auto gpus = static_cast<double>(point.gpus);
  const double moved = 2 * (gpus - 1) / gpus * *point.gradient_bytes;
  const double a_step = moved / *point.link_bytes;
  std::string text = fmt::format(
      "A ring moves 2*({:.0f}-1)/{:.0f} * {} MB = {} MB a step over each link: {:.2g} s at {} GB/s.\n", gpus, gpus,
      figure(*point.gradient_bytes / 1e6), figure(moved / 1e6), a_step, figure(*point.link_bytes / 1e9));
  const double size = gpus / static_cast<double>(base.gpus);
  std::optional<double> steps = point.steps;
  if (!steps && base.steps) steps = *base.steps / size;
  if (!steps || !point.work_seconds || !base.work_seconds) return text;
  const double transfer = a_step * *steps, ideal = *base.work_seconds / size;
  text += fmt::format("{} steps: {} min of pure transfer at full rate, to the ideal {} min. ", figure(*steps),
                      figure(transfer / 60), figure(ideal / 60));
  if (transfer + ideal < 0.9 * *point.work_seconds) {
    text += fmt::format(
        "Bandwidth alone explains {} of {} min: something else is needed as well (sockets in place of RDMA, "
        "no overlap, one stream, latency, input).\n",
        figure((transfer + ideal) / 60), figure(*point.work_seconds / 60));
  } else {
    text += "Without overlap that explains the time that was measured.\n";
  }
  return text;
}

// Whether two neighbours differ by more than their own rows do.
bool beyond_chance(const ScalingPoint& a, const ScalingPoint& b) {
  return std::abs(b.rate / a.rate - 1) > std::max(a.spread, b.spread) / 2;
}

std::vector<Finding> losses(const ScalingTable& table, const ScalingAnswer& answer) {
  Finding negative, flat;
  for (std::size_t i = 1; i < answer.points.size(); ++i) {
    const ScalingPoint &a = answer.points[i - 1], &b = answer.points[i];
    const double gain = b.rate / a.rate;
    if (a.gpus == b.gpus) continue;
    const bool loses = gain < kNegative && beyond_chance(a, b);
    const bool stays = !loses && gain < kFlat && static_cast<double>(b.gpus) >= kMoreGpus * static_cast<double>(a.gpus);
    if (!loses && !stays) continue;
    Finding& f = loses ? negative : flat;
    if (f.code.empty()) {
      f = finding(table, loses ? "scaling-negative" : "scaling-flat", Severity::warning, b);
      f.summary = from_to(answer, a, b) + ", " + ratio_text(answer, a, b);
    }
    f.explanation +=
        fmt::format("{}: {}. {}.\n", from_to(answer, a, b), change(answer, a, b), ratio_text(answer, a, b)) +
        decomposition(a, b);
  }
  std::vector<Finding> findings;
  if (!negative.code.empty()) {
    negative.explanation +=
        "What the time goes into is not settled by it: a GPU that waits inside of a collective counts as fully used.\n";
    negative.advice =
        "Take a trace of a few steps at both sizes and compare the time inside of collectives; run nccl-tests' "
        "all_reduce "
        "over the same nodes; see by NCCL_DEBUG=INFO whether it uses the network adapter that was meant (NET/IB, not "
        "NET/Socket). Buy nothing before that.";
    findings.push_back(std::move(negative));
  }
  if (!flat.code.empty()) {
    flat.advice =
        "Look for one resource that is full at all sizes: storage, input, one network link, a batch of the whole job "
        "that does not grow.";
    findings.push_back(std::move(flat));
  }
  return findings;
}

}  // namespace

std::string figure(double value) {
  if (std::abs(value) >= 999.5 && std::abs(value) < 1e18) {
    return (value < 0 ? "-" : "") + format_count(static_cast<std::uint64_t>(std::llround(std::abs(value))));
  }
  return fmt::format("{:.3g}", value);
}

std::optional<Finding> find_impossible_rows(const ScalingTable& table) {
  Finding f;
  bool any_failed = false;
  for (std::size_t i = 0; i < table.runs.size(); ++i) {
    const ScalingRun& run = table.runs[i];
    const bool failed = !rate_of(table, run);
    const std::string why =
        failed ? "a rate or time of zero or below: no result, and not a number to use" : too_fast(run);
    if (why.empty()) continue;
    any_failed = any_failed || failed;
    const std::string text = fmt::format("row {}: {}", i + 1, why);
    f.subjects.push_back(fmt::format("row {}", i + 1));
    if (f.evidence.size() < 8) f.evidence.push_back({table.path, run.line, text});
    if (f.explanation.size() < 1000) f.explanation += "R" + text.substr(1) + ".\n";
  }
  if (f.subjects.empty()) return std::nullopt;
  f.code = "sim-implausible";
  f.severity = Severity::error;
  f.confidence = Confidence::high;
  f.summary = fmt::format("{} of {} rows cannot be, and {} left out: {}", f.subjects.size(), table.runs.size(),
                          f.subjects.size() == 1 ? "is" : "are", fmt::join(f.subjects, ", "));
  f.advice = any_failed
                 ? "See what wrote these rows, and in what units; -1 and 0 mostly stand for a run that failed."
                 : "See what wrote these rows, and in what units: bits or bytes, of one link or of all of a node.";
  return f;
}

namespace {

// Of how a job scales one size says nothing; of collectives those that nothing could be held against.
std::string why_undecided(const ScalingAnswer& answer) {
  if (!answer.collectives.empty()) {
    const bool judged = std::any_of(answer.collectives.begin(), answer.collectives.end(),
                                    [](const CollectivePoint& p) { return p.bus_bytes && p.row.link_bytes; });
    return judged ? "" : "no row has an operation whose bus bandwidth is known and a figure of its link";
  }
  std::set<std::uint64_t> sizes;
  for (const ScalingPoint& point : answer.points) sizes.insert(point.gpus);
  if (sizes.size() > 1) return "";
  return sizes.empty() ? "no row can be used"
                       : fmt::format("rows of one size alone ({}) can be used: how a job scales takes two",
                                     sized(answer, *sizes.begin()));
}

}  // namespace

ScalingAnswer judge_scaling(const ScalingTable& given) {
  ScalingTable table = given;
  // More work than GPUs: bare times of steps that fall so fast are those of a fixed batch.
  table.fixed_batch = only_steps(table) && best_efficiency(points_of(table)) > kSuper;
  ScalingAnswer answer;
  answer.findings = judge_collectives(table, answer.collectives);
  if (auto impossible = find_impossible_rows(table)) answer.findings.push_back(std::move(*impossible));
  answer.points = points_of(table);
  if (table.counts_nodes) answer.size_word = "node";
  const bool rates =
      std::any_of(table.runs.begin(), table.runs.end(), [](const ScalingRun& run) { return run.rate.has_value(); });
  if (rates) answer.unit = table.rate_unit;
  add_cost(table, answer);
  answer.undecided = why_undecided(answer);
  if (answer.points.empty()) return answer;
  if (answer.points.size() > 1) {
    for (Finding& f : losses(table, answer)) answer.findings.push_back(std::move(f));
    answer.findings.push_back(what_it_says(table, answer));
  }
  if (auto open = what_is_open(table, answer)) answer.findings.push_back(std::move(*open));
  return answer;
}

}  // namespace ddx::analyzers
