#include "traces/formats/scaling_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "base/error.h"
#include "traces/formats/csv.h"
#include "traces/formats/log_scan.h"
#include "traces/formats/number_style.h"

namespace ddx::formats {
namespace {

constexpr std::size_t kMaxRows = 100'000;
constexpr double kMostGpus = 1e9;

using Words = std::vector<std::string>;

// What a column holds. Values are in `scale` of the base unit (seconds, bytes, bytes a second, one).
enum class Holds { nothing, gpus, nodes, gpus_per_node, rate, step, work, batch, link, gradient, steps, op, bytes };
struct Column {
  Holds holds = Holds::nothing;
  double scale = 1;
  bool per_gpu = false;
  std::string unit;  // of a rate
};

// "Tokens/s/GPU" -> Tokens per s per GPU; "Step time (ms)" -> Step time ms.
Words written_words(std::string_view name) {
  Words words(1);
  for (const char c : name) {
    if (is_letter(c) || is_digit(c)) {
      words.back() += c;
    } else if (c == '/') {
      words.insert(words.end(), {"per", ""});
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  std::erase(words, "");
  return words;
}

Words words_of(std::string_view name) { return written_words(lower(name)); }

bool has(const Words& words, std::initializer_list<std::string_view> any) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return std::find(any.begin(), any.end(), word) != any.end(); });
}

bool is(const Words& words, std::initializer_list<std::string_view> names) {
  const std::string joined = fmt::format("{}", fmt::join(words, "_"));
  return std::find(names.begin(), names.end(), joined) != names.end();
}

// The length of a unit of time in seconds.
std::optional<double> time_unit(const Words& words) {
  static const std::map<std::string_view, double> kUnits{
      {"ns", 1e-9}, {"us", 1e-6},   {"ms", 1e-3},    {"msec", 1e-3},         {"s", 1},
      {"sec", 1},   {"secs", 1},    {"second", 1},   {"seconds", 1},         {"m", 60},
      {"min", 60},  {"mins", 60},   {"minute", 60},  {"minutes", 60},        {"h", 3600},
      {"hr", 3600}, {"hour", 3600}, {"hours", 3600}, {"milliseconds", 1e-3}, {"microseconds", 1e-6}};
  for (const std::string& word : words) {
    if (const auto at = kUnits.find(word); at != kUnits.end()) return at->second;
  }
  return std::nullopt;
}

bool per_gpu(const Words& words) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "per" && (words[i + 1] == "gpu" || words[i + 1] == "rank" || words[i + 1] == "device")) return true;
  }
  return !words.empty() && words.size() > 1 && words.back() == "gpu";
}

// What a rate counts: "images", in the plural and written out; empty: none of the known.
std::string counted_unit(const Words& words) {
  static const std::map<std::string_view, std::string_view> kUnits{{"samples", "samples"},
                                                                   {"sample", "samples"},
                                                                   {"images", "images"},
                                                                   {"image", "images"},
                                                                   {"imgs", "images"},
                                                                   {"img", "images"},
                                                                   {"tokens", "tokens"},
                                                                   {"token", "tokens"},
                                                                   {"tok", "tokens"},
                                                                   {"toks", "tokens"},
                                                                   {"sequences", "sequences"},
                                                                   {"seqs", "sequences"},
                                                                   {"seq", "sequences"},
                                                                   {"examples", "examples"},
                                                                   {"items", "items"},
                                                                   {"sentences", "sentences"},
                                                                   {"words", "words"},
                                                                   {"frames", "frames"},
                                                                   {"rows", "rows"}};
  for (const std::string& word : words) {
    if (const auto at = kUnits.find(word); at != kUnits.end()) return std::string(at->second);
  }
  return "";
}

bool speaks_of_steps(const Words& words) {
  return has(words, {"step", "steps", "iter", "iters", "iteration", "iterations", "it", "batch", "batches", "steptime",
                     "itertime"});
}

// "samples per s", "img s", "throughput", "steps per s".
std::optional<Column> rate_column(const Words& words) {
  const bool throughput = has(words, {"throughput", "tput", "tps"});
  std::string unit = counted_unit(words);
  const auto per = std::find(words.begin(), words.end(), "per");
  bool a_second = throughput;
  for (auto at = per; at != words.end() && !a_second; at = std::find(at + 1, words.end(), "per")) {
    a_second = at + 1 != words.end() && has({*(at + 1)}, {"s", "sec", "second", "secs", "seconds"});
  }
  if (!unit.empty() && !a_second) a_second = has({words.back()}, {"s", "sec", "second"}) && words.size() > 1;
  if (!a_second) return std::nullopt;
  if (unit.empty() && throughput) unit = has(words, {"tps"}) ? "tokens" : "units";
  if (unit.empty() && speaks_of_steps(words)) return Column{Holds::rate, 1, false, "steps"};
  if (unit.empty()) return std::nullopt;
  return Column{Holds::rate, 1, per_gpu(words), unit};
}

std::optional<Column> size_column(const Words& words) {
  if (is(words, {"gpus",     "gpu",     "ranks",      "rank_count", "world_size", "worldsize",   "world",     "n_gpus",
                 "num_gpus", "ngpus",   "total_gpus", "gpu_count",  "devices",    "num_devices", "processes", "procs",
                 "np",       "workers", "group_size", "n_ranks",    "nranks",     "num_ranks"})) {
    return Column{Holds::gpus, 1, false, ""};
  }
  if (is(words, {"nodes", "node_count", "num_nodes", "n_nodes", "nnodes", "hosts", "machines", "servers"})) {
    return Column{Holds::nodes, 1, false, ""};
  }
  if (is(words,
         {"gpus_per_node", "gpus_node", "gpu_per_node", "ranks_per_node", "procs_per_node", "nproc_per_node",
          "processes_per_node", "tasks_per_node", "devices_per_node", "ppn", "local_world_size", "gpus_per_host"})) {
    return Column{Holds::gpus_per_node, 1, false, ""};
  }
  return std::nullopt;
}

// Bytes of a "Gb" or "MB" in units of 10^9 or 10^6, by the case of its b; nullopt where that says nothing, since the
// whole name is in one case ("link_gb", "LINK_GB").
std::optional<double> bytes_by_case(std::string_view name, std::string_view unit) {
  const bool upper = std::any_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  const bool both = upper && std::any_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  for (const std::string& word : written_words(name)) {
    if (lower(word) == unit && both) return word[1] == 'B' ? 1 : 1. / 8;
  }
  return std::nullopt;
}

// "link gbit s", "nic Gbps", "network gbyte s", "link GB": bytes a second. Throws Error, without a place, where bits
// and bytes cannot be told apart.
std::optional<Column> link_column(std::string_view name, const Words& words) {
  if (!has(words, {"link", "network", "net", "nic", "bandwidth", "interconnect"})) return std::nullopt;
  if (has(words, {"gbit", "gbits"})) return Column{Holds::link, 1e9 / 8, false, ""};
  if (has(words, {"gbyte", "gbytes", "gigabytes"})) return Column{Holds::link, 1e9, false, ""};
  for (const std::string_view unit : {"gbps", "gb"}) {
    if (!has(words, {unit})) continue;
    if (const auto bytes = bytes_by_case(name, unit)) return Column{Holds::link, 1e9 * *bytes, false, ""};
    // "gbps" is how networks' bits are written by all who write small.
    if (unit == "gbps" && name == lower(name)) return Column{Holds::link, 1e9 / 8, false, ""};
    throw Error(fmt::format("column \"{}\": expected gbit or gbyte, or Gb or GB: bits and bytes cannot be told apart",
                            printable(name, 64)));
  }
  return std::nullopt;
}

Column column_of(std::string_view name) {
  const Words words = words_of(name);
  if (words.empty()) return {};
  if (const auto size = size_column(words)) return *size;
  if (is(words, {"op", "collective", "operation"})) return {Holds::op, 1, false, ""};
  if (is(words, {"bytes", "size", "size_bytes", "message_bytes", "msg_bytes", "message_size"}))
    return {Holds::bytes, 1, false, ""};
  if (is(words, {"gradient_bytes", "grad_bytes", "gradients_bytes"})) return {Holds::gradient, 1, false, ""};
  // In small letters megabytes: nobody counts gradients in bits.
  if (is(words, {"gradient_mb", "grad_mb"})) {
    return {Holds::gradient, 1e6 * bytes_by_case(name, "mb").value_or(1), false, ""};
  }
  if (is(words, {"steps", "num_steps", "n_steps", "iterations"})) return {Holds::steps, 1, false, ""};
  if (has(words, {"batch", "gbs", "batchsize"}) && !time_unit(words)) {
    const bool local = per_gpu(words) || has(words, {"local", "micro", "device"});
    return {Holds::batch, 1, local, ""};
  }
  if (const auto link = link_column(name, words)) return *link;
  if (const auto rate = rate_column(words)) return *rate;
  const auto unit = time_unit(words);
  const bool timed =
      unit || has(words, {"time", "latency", "duration", "runtime", "elapsed", "walltime", "steptime", "itertime"});
  if (!timed) return {};
  return {speaks_of_steps(words) ? Holds::step : Holds::work, unit.value_or(1), false, ""};
}

struct Columns {
  std::vector<Column> all;
  std::optional<std::size_t> find(Holds holds) const {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].holds == holds) return i;
    }
    return std::nullopt;
  }
};

class Row {
 public:
  Row(const Columns& columns, const std::vector<std::string>& cells, DecimalMark mark)
      : columns_(columns), cells_(cells), mark_(mark) {}

  const std::string* text(Holds holds) const {
    const auto at = columns_.find(holds);
    return at && *at < cells_.size() && !cells_[*at].empty() ? &cells_[*at] : nullptr;
  }
  // In base units; nullopt where the cell is empty or no number (then `bad`).
  std::optional<double> value(Holds holds) {
    const std::string* cell = text(holds);
    if (cell == nullptr) return std::nullopt;
    const auto number = number_in(*cell, mark_);
    if (!number) {
      bad_ = *cell;
      return std::nullopt;
    }
    return *number * columns_.all[*columns_.find(holds)].scale;
  }
  // A whole number of at least 1.
  std::optional<std::uint64_t> count(Holds holds) {
    const auto number = value(holds);
    if (!number) return std::nullopt;
    if (*number < 1 || *number > kMostGpus || *number != std::floor(*number)) {
      bad_ = *text(holds);
      return std::nullopt;
    }
    return static_cast<std::uint64_t>(*number);
  }
  const std::string& bad() const { return bad_; }  // the last cell that could not be used; empty: none

 private:
  const Columns& columns_;
  const std::vector<std::string>& cells_;
  DecimalMark mark_;
  std::string bad_;
};

class Reader {
 public:
  Reader(const std::string& path, std::string_view bytes, Diagnostics& diagnostics)
      : rest_(bytes), diagnostics_(diagnostics) {
    table_.path = path;
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
  }

  ScalingTable read() {
    read_header();
    NumberStyle style;
    each_row([&](const std::vector<std::string>& cells) { look_at(cells, style); });
    mark_ = style.mark(table_.path);
    const bool collectives = columns_.find(Holds::op) && columns_.find(Holds::bytes);
    told_ = true;
    const std::string_view unread = each_row([&](const std::vector<std::string>& cells) {
      if (std::any_of(cells.begin() + static_cast<std::ptrdiff_t>(std::min(cells.size(), columns_.all.size())),
                      cells.end(), [](const std::string& cell) { return !cell.empty(); })) {
        return count("measured.bad_row", "more cells than the header has columns: a comma within a number?");
      }
      Row row(columns_, cells, mark_);
      if (collectives) {
        add_collective(row);
      } else {
        add_run(row);
      }
    });
    if (!trimmed(unread).empty()) count("measured.too_long", "more rows than ddx reads");
    drop_unlike();
    if (table_.runs.empty() && table_.collectives.empty()) {
      throw Error(table_.path, {}, "no row with a size and a value; the header is read, the rows are not");
    }
    return std::move(table_);
  }

 private:
  void count(std::string_view name, const std::string& what) {
    diagnostics_.count(name, DiagnosticSeverity::data_loss, table_.path + ":" + std::to_string(line_) + ": " + what);
  }

  // Gives `take` the cells of each row behind the header, with line_ at it. Returns what is left behind the most rows.
  template <class Take>
  std::string_view each_row(Take take) {
    std::string_view rest = rest_;
    line_ = header_line_;
    for (std::size_t rows = 0; !rest.empty() && rows < kMaxRows;) {
      const std::string_view text = take_line(rest);
      ++line_;
      if (trimmed(text).empty() || trimmed(text).starts_with("#")) continue;
      ++rows;
      if (text.size() <= kMaxCsvRow) {
        take(cells_of(text, separator_));
      } else if (told_) {
        count("measured.too_long", "a longer row than ddx reads");
      }
    }
    return rest;
  }

  void look_at(const std::vector<std::string>& cells, NumberStyle& style) const {
    for (std::size_t i = 0; i < std::min(cells.size(), columns_.all.size()); ++i) {
      const Holds holds = columns_.all[i].holds;
      if (holds == Holds::nothing || holds == Holds::op) continue;
      const bool whole = holds == Holds::gpus || holds == Holds::nodes || holds == Holds::gpus_per_node;
      style.see(cells[i], line_, whole);
    }
  }

  Column column_named(const std::string& name) const {
    try {
      return column_of(name);
    } catch (const Error& error) {
      throw Error(table_.path, {std::nullopt, line_}, error.what());
    }
  }

  void read_header() {
    std::string_view header;
    while (!rest_.empty() && (trimmed(header).empty() || trimmed(header).starts_with("#"))) {
      header = take_line(rest_);
      ++line_;
    }
    if (header.size() > kMaxCsvRow)
      throw Error(table_.path, {std::nullopt, line_}, "expected a header of column names");
    for (const char separator : {'\t', ';', ','}) {
      separator_ = separator;
      if (contains(header, std::string_view(&separator, 1))) break;
    }
    const std::vector<std::string> names = cells_of(header, separator_);
    for (const std::string& name : names) {
      columns_.all.push_back(column_named(name));
      if (columns_.all.back().holds == Holds::nothing && !name.empty()) {
        diagnostics_.count("measured.unused_column", DiagnosticSeverity::info,
                           "column \"" + printable(name, 64) + "\"");
      }
    }
    require(header);
    header_line_ = line_;
    if (const auto rate = columns_.find(Holds::rate)) table_.rate_unit = columns_.all[*rate].unit;
    table_.counts_nodes = !columns_.find(Holds::gpus) && !columns_.find(Holds::gpus_per_node);
  }

  void require(std::string_view header) const {
    if (trimmed(header).empty() || trimmed(header).starts_with("#"))
      throw Error(table_.path, {}, "the file is empty; expected a header of column names");
    const auto any = [&](std::initializer_list<Holds> kinds) {
      return std::any_of(kinds.begin(), kinds.end(), [&](Holds kind) { return columns_.find(kind).has_value(); });
    };
    const std::string found = "; the header is \"" + printable(header, 200) + "\"";
    if (!any({Holds::gpus, Holds::nodes})) {
      throw Error(table_.path, {std::nullopt, line_},
                  "expected a column of sizes: gpus, ranks, world_size or nodes" + found);
    }
    if (!any({Holds::rate, Holds::step, Holds::work})) {
      throw Error(
          table_.path, {std::nullopt, line_},
          "expected a column of values: samples_per_s, tokens_per_s_per_gpu, step_ms, minutes or the like" + found);
    }
  }

  void add_run(Row& row) {
    ScalingRun run;
    run.line = line_;
    run.nodes = row.count(Holds::nodes);
    const auto gpus = row.count(Holds::gpus), each = row.count(Holds::gpus_per_node);
    const auto batch = row.value(Holds::batch);
    run.step_seconds = row.value(Holds::step);
    run.work_seconds = row.value(Holds::work);
    run.link_bytes = row.value(Holds::link);
    run.gradient_bytes = row.value(Holds::gradient);
    run.steps = row.value(Holds::steps);
    run.rate = row.value(Holds::rate);
    const auto size = gpus                  ? gpus
                      : run.nodes && each   ? std::optional(*run.nodes * *each)
                      : table_.counts_nodes ? run.nodes
                                            : std::nullopt;
    if (!row.bad().empty() || !size || (!run.rate && !run.step_seconds && !run.work_seconds)) {
      return count("measured.bad_row", row.bad().empty()
                                           ? "no size, or no value"
                                           : "expected a number, found \"" + printable(row.bad(), 64) + "\"");
    }
    if (const std::string why = contradiction(gpus, run.nodes, each); !why.empty())
      return count("measured.bad_row", why);
    run.gpus = *size;
    if (!run.nodes && each && *size % *each == 0) run.nodes = std::max<std::uint64_t>(1, *size / *each);
    finish(run, batch);
    table_.runs.push_back(run);
  }

  // What sizes of a row say against each other. Nodes need not be full.
  static std::string contradiction(std::optional<std::uint64_t> gpus, std::optional<std::uint64_t> nodes,
                                   std::optional<std::uint64_t> each) {
    if (gpus && nodes && *gpus < *nodes) return fmt::format("{} GPUs cannot be on {} nodes", *gpus, *nodes);
    if (gpus && nodes && each && (*gpus > *nodes * *each || *gpus <= (*nodes - 1) * *each)) {
      return fmt::format("{} GPUs are not those of {} nodes with {} each", *gpus, *nodes, *each);
    }
    return {};
  }

  // Turns what is given a GPU or a step into rates of the job.
  void finish(ScalingRun& run, std::optional<double> batch) {
    const auto gpus = static_cast<double>(run.gpus);
    const auto rate = columns_.find(Holds::rate);
    if (run.rate && columns_.all[*rate].per_gpu) *run.rate *= gpus;
    if (run.rate && table_.rate_unit == "steps") {
      run.step_seconds = *run.rate == 0 ? 0 : 1 / *run.rate;
      run.rate.reset();
    }
    if (run.rate || !run.step_seconds) return;
    if (batch && *run.step_seconds > 0) {
      const bool local = columns_.all[*columns_.find(Holds::batch)].per_gpu;
      run.rate = *batch * (local ? gpus : 1) / *run.step_seconds;
      table_.rate_unit = "samples";
    } else {
      table_.per_step = true;
    }
  }

  // Rows compare by one kind of value: by rates where there are any, else by the time of the work, else of a step.
  void drop_unlike() {
    const auto value_of = [this](const ScalingRun& run) -> const std::optional<double>& {
      return kind_ == Holds::rate ? run.rate : kind_ == Holds::work ? run.work_seconds : run.step_seconds;
    };
    for (const Holds kind : {Holds::rate, Holds::work, Holds::step}) {
      kind_ = kind;
      if (std::any_of(table_.runs.begin(), table_.runs.end(), value_of)) break;
    }
    std::erase_if(table_.runs, [&](const ScalingRun& run) {
      if (value_of(run)) return false;
      line_ = run.line;
      count("measured.bad_row", "lacks the value that the other rows have");
      return true;
    });
  }

  void add_collective(Row& row) {
    MeasuredCollective collective;
    collective.line = line_;
    const auto ranks = row.count(Holds::gpus);
    const auto bytes = row.value(Holds::bytes);
    const auto seconds = columns_.find(Holds::work) ? row.value(Holds::work) : row.value(Holds::step);
    collective.link_bytes = row.value(Holds::link);
    const std::string* op = row.text(Holds::op);
    if (!row.bad().empty() || !ranks || !bytes || !seconds || op == nullptr || *bytes < 0) {
      return count("measured.bad_row", "expected an operation, a number of ranks, bytes and a time");
    }
    collective.op = printable(*op, 64);
    collective.ranks = *ranks;
    collective.bytes = *bytes;
    collective.seconds = *seconds;
    table_.collectives.push_back(std::move(collective));
  }

  std::string_view rest_;
  Diagnostics& diagnostics_;
  ScalingTable table_;
  Columns columns_;
  char separator_ = ',';
  Holds kind_ = Holds::rate;  // of values that rows compare by
  DecimalMark mark_ = DecimalMark::point;
  bool told_ = false;  // what is wrong with rows; the first look at them is silent
  std::uint64_t header_line_ = 0;
  std::uint64_t line_ = 0;
};

}  // namespace

ScalingTable read_scaling_table(const std::string& path, std::string_view bytes, Diagnostics& diagnostics) {
  return Reader(path, bytes, diagnostics).read();
}

}  // namespace ddx::formats
