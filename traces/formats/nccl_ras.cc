#include "traces/formats/nccl_ras.h"

#include <simdjson.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "traces/formats/log_prefix.h"
#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

std::string name(std::string_view text) { return printable(text, 255); }

std::string text_of(const object& from, std::string_view key) {
  std::string_view text;
  return from[key].get_string().get(text) == simdjson::SUCCESS ? name(text) : std::string();
}

std::optional<std::int64_t> number_of(const object& from, std::string_view key) {
  std::int64_t value = 0;
  if (from[key].get_int64().get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

bool flag_of(const object& from, std::string_view key) {
  bool value = false;
  return from[key].get_bool().get(value) == simdjson::SUCCESS && value;
}

// ncclResult_t; 0 is fine and 7 (in progress) no error.
std::string error_of(const object& status) {
  static constexpr std::string_view kNames[] = {"",
                                                "unhandled CUDA error",
                                                "unhandled system error",
                                                "internal error",
                                                "invalid argument",
                                                "invalid usage",
                                                "remote process exited or network error",
                                                "in progress",
                                                "timeout"};
  const auto word = [](std::int64_t code) {
    return code >= 0 && code < 9 ? std::string(kNames[code]) : "error " + std::to_string(code);
  };
  const std::int64_t async = number_of(status, "async_error").value_or(0);
  const std::int64_t init = number_of(status, "init_state").value_or(0);
  if (async != 0 && async != 7) return word(async);
  if (init != 0) return "init: " + word(init);
  if (flag_of(status, "abort_flag")) return "aborted";
  return {};
}

std::optional<RasCommunicator::Member> member_of(const element& from, bool missing) {
  object fields;
  if (from.get_object().get(fields) != simdjson::SUCCESS) return std::nullopt;
  const auto rank = number_of(fields, "rank");
  if (!rank || *rank < INT32_MIN || *rank > INT32_MAX) return std::nullopt;
  RasCommunicator::Member member;
  member.rank = RankId(*rank);
  member.host = text_of(fields, "host");
  member.pid = number_of(fields, "pid");
  member.missing = missing;
  object status;
  if (fields["status"].get_object().get(status) == simdjson::SUCCESS) {
    member.error = error_of(status);
  } else {
    status = fields;
  }
  member.unresponsive = flag_of(status, "unresponsive");
  member.considered_dead = flag_of(status, "considered_dead");
  object counts;
  if (fields["collective_counts"].get_object().get(counts) != simdjson::SUCCESS) return member;
  for (const auto& [key, value] : counts) {
    std::uint64_t launched = 0;
    if (value.get_uint64().get(launched) == simdjson::SUCCESS) member.counts.emplace_back(name(key), launched);
  }
  return member;
}

// The counts of all members, by operation: JSON lists every rank, as the text does only those that differ.
std::vector<RasCommunicator::CountGroup> count_groups(const std::vector<RasCommunicator::Member>& members) {
  std::map<std::pair<std::string_view, std::uint64_t>, std::vector<RankId>> by_count;
  for (const RasCommunicator::Member& member : members) {
    for (const auto& [op, launched] : member.counts) by_count[{op, launched}].push_back(member.rank);
  }
  std::vector<RasCommunicator::CountGroup> groups;
  for (auto& [key, ranks] : by_count) {
    groups.push_back({std::string(key.first), key.second, ranks.size(), std::move(ranks)});
  }
  return groups;
}

std::string errors_of(const RasCommunicator& communicator) {
  bool dead = false;
  bool incomplete = false;
  bool error = false;
  for (const RasCommunicator::Member& member : communicator.members) {
    dead = dead || member.considered_dead;
    incomplete = incomplete || member.missing;
    error = error || !member.error.empty();
  }
  std::map<std::string_view, int> values;
  for (const RasCommunicator::CountGroup& group : communicator.groups) ++values[group.op];
  const bool mismatch = std::any_of(values.begin(), values.end(), [](const auto& value) { return value.second > 1; });
  std::string all;
  const auto add = [&](bool is, std::string_view what) {
    if (is) all += (all.empty() ? "" : ",") + std::string(what);
  };
  add(incomplete, "INCOMPLETE");
  add(error, "ERROR");
  add(mismatch, "MISMATCH");
  add(dead, "DEAD");
  return all.empty() ? "OK" : all;
}

class RasReader {
 public:
  RasReader(const Source& source, const ImportOptions& options, Evidence& out)
      : source_(source), max_events_(options.max_events_per_file), out_(out) {}

  void read() {
    std::size_t reports = 0;
    std::size_t at = 0;
    while (const auto next = object_in(source_.bytes, at)) {
      line_ += static_cast<std::uint64_t>(std::count(source_.bytes.begin() + static_cast<std::ptrdiff_t>(counted_),
                                                     source_.bytes.begin() + static_cast<std::ptrdiff_t>(next->first),
                                                     '\n'));
      counted_ = next->first;
      at = next->first + next->second;
      if (read_report(source_.bytes.substr(next->first, next->second))) ++reports;
    }
    if (reports == 0) throw Error(source_.path, {0, {}}, "expected a RAS report: an object with \"communicators\"");
  }

 private:
  // The next outermost {...} from `at`: (begin, length). A text that ends inside one gives what there is.
  static std::optional<std::pair<std::size_t, std::size_t>> object_in(std::string_view bytes, std::size_t at) {
    const std::size_t begin = bytes.find('{', at);
    if (begin == std::string_view::npos) return std::nullopt;
    std::size_t depth = 0;
    bool quoted = false;
    for (std::size_t i = begin; i < bytes.size(); ++i) {
      const char c = bytes[i];
      if (quoted) {
        if (c == '\\') ++i;
        if (c == '"') quoted = false;
      } else if (c == '"') {
        quoted = true;
      } else if (c == '{') {
        ++depth;
      } else if (c == '}' && --depth == 0) {
        return std::pair(begin, i + 1 - begin);
      }
    }
    return std::pair(begin, bytes.size() - begin);
  }

  void diagnose(std::string_view what, DiagnosticSeverity severity, const std::string& detail) {
    out_.diagnostics.count(what, severity, source_.path + ":" + std::to_string(line_) + ": " + detail);
  }

  bool read_report(std::string_view text) {
    simdjson::dom::parser parser;
    element root;
    auto error = parser.parse(text.data(), text.size()).get(root);
    std::string repaired;
    if (error != simdjson::SUCCESS && repair(text, repaired)) {
      error = parser.parse(repaired.data(), repaired.size()).get(root);
      if (error == simdjson::SUCCESS) {
        diagnose("nccl_ras.missing_comma", DiagnosticSeverity::info,
                 "NCCL 2.28.9 leaves out a comma; read all the same");
      }
    }
    if (error != simdjson::SUCCESS) return salvage(text, simdjson::error_message(error));
    object report;
    array communicators;
    if (root.get_object().get(report) != simdjson::SUCCESS ||
        report["communicators"].get_array().get(communicators) != simdjson::SUCCESS) {
      diagnose("nccl_ras.no_report", DiagnosticSeverity::data_loss, "expected an object with \"communicators\"");
      return false;
    }
    read_head(report);
    for (const element communicator : communicators) read_communicator(communicator);
    return true;
  }

  // A report that is cut or damaged: its communicators are read one by one, as far as they are whole.
  bool salvage(std::string_view text, std::string_view why) {
    static constexpr std::string_view kKey = "\"communicators\"";
    const std::size_t key = text.find(kKey);
    const std::size_t list = key == std::string_view::npos ? key : text.find('[', key);
    std::size_t whole = 0;
    if (list != std::string_view::npos) {
      simdjson::dom::parser parser;
      object head;
      const std::string before(trimmed_comma(text.substr(0, key)));
      if (parser.parse(before + "}").get_object().get(head) == simdjson::SUCCESS) read_head(head);
      const std::string_view rest = text.substr(list);
      std::size_t at = 0;
      while (const auto next = object_in(rest, at)) {
        if (rest.substr(at, next->first - at).find(']') != std::string_view::npos) break;
        at = next->first + next->second;
        if (read_damaged(rest.substr(next->first, next->second))) ++whole;
      }
    }
    diagnose("nccl_ras.bad_json", DiagnosticSeverity::data_loss,
             "not JSON (" + std::string(why) + "): " +
                 (whole == 0 ? "a report is left out"
                             : "of a report, " + std::to_string(whole) +
                                   (whole == 1 ? " communicator read" : " communicators read")));
    return whole > 0;
  }

  bool read_damaged(std::string_view text) {
    simdjson::dom::parser parser;
    element communicator;
    std::string repaired;
    if (parser.parse(text.data(), text.size()).get(communicator) != simdjson::SUCCESS &&
        (!repair(text, repaired) ||
         parser.parse(repaired.data(), repaired.size()).get(communicator) != simdjson::SUCCESS)) {
      return false;
    }
    read_communicator(communicator);
    return true;
  }

  static std::string_view trimmed_comma(std::string_view text) {
    text = trimmed(text);
    if (text.ends_with(',')) text.remove_suffix(1);
    return text;
  }

  // NCCL 2.28.9 writes no comma between the fields of a missing rank before "status": "nvml_dev": 0 <newline> "status".
  static bool repair(std::string_view text, std::string& repaired) {
    static constexpr std::string_view kKey = "\"status\"";
    bool changed = false;
    std::size_t from = 0;
    for (std::size_t at = text.find(kKey); at != std::string_view::npos; at = text.find(kKey, at + kKey.size())) {
      const std::size_t last = text.substr(0, at).find_last_not_of(" \t\r\n");
      if (last == std::string_view::npos || last + 1 < from || !(is_digit(text[last]) || text[last] == '"')) continue;
      repaired += text.substr(from, last + 1 - from);
      repaired += ',';
      from = last + 1;
      changed = true;
    }
    repaired += text.substr(from);
    return changed;
  }

  void read_head(const object& report) {
    time_.reset();
    std::size_t used = 0;
    if (const std::string stamp = text_of(report, "timestamp"); !stamp.empty()) time_ = parse_date_time(stamp, used);
    if (const std::string version = text_of(report, "nccl_version"); !version.empty()) {
      add(LibraryVersion{version}, "NCCL version " + version);
    }
  }

  void read_communicator(const element& from) {
    object fields;
    if (from.get_object().get(fields) != simdjson::SUCCESS) {
      diagnose("nccl_ras.bad_communicator", DiagnosticSeverity::data_loss, "expected an object for each communicator");
      return;
    }
    RasCommunicator communicator;
    communicator.id = text_of(fields, "hash");
    if (const std::string second = text_of(fields, "secondary_hash"); !second.empty()) communicator.id += ":" + second;
    communicator.size = static_cast<std::uint64_t>(std::max<std::int64_t>(0, number_of(fields, "size").value_or(0)));
    read_members(fields, "ranks", false, communicator);
    read_members(fields, "missing_ranks", true, communicator);
    communicator.groups = count_groups(communicator.members);
    communicator.errors = errors_of(communicator);
    const std::string text = "RAS: communicator " + communicator.id + " of " + std::to_string(communicator.size) +
                             " ranks, " + communicator.errors;
    const std::string group = communicator.id;
    add(std::move(communicator), text, group);
  }

  void read_members(const object& from, std::string_view key, bool missing, RasCommunicator& into) {
    array list;
    if (from[key].get_array().get(list) != simdjson::SUCCESS) return;
    for (const element entry : list) {
      if (auto member = member_of(entry, missing)) {
        into.members.push_back(std::move(*member));
      } else {
        diagnose("nccl_ras.bad_member", DiagnosticSeverity::data_loss, "expected an object with \"rank\"");
      }
    }
  }

  void add(LogFact fact, const std::string& text, const std::string& group = {}) {
    if (out_.events.size() >= max_events_) {
      diagnose("log.too_many_events", DiagnosticSeverity::data_loss, "more events than ddx keeps of one file");
      return;
    }
    LogEvent event;
    event.line = line_;
    event.text = printable(text, 400);
    event.time = time_;
    event.group = group;
    event.fact = std::move(fact);
    out_.events.push_back(std::move(event));
  }

  const Source& source_;
  std::uint64_t max_events_;
  Evidence& out_;
  std::uint64_t line_ = 1;
  std::size_t counted_ = 0;
  std::optional<Nanos> time_;
};

// Where the report begins: at once, or behind a few lines of whoever asked for it.
std::size_t begin_of_report(std::string_view head) {
  constexpr std::size_t kMostBanner = 1024;
  for (std::size_t at = 0; at < std::min(head.size(), kMostBanner);) {
    const std::size_t first = head.find_first_not_of(" \t\r\n", at);
    if (first == std::string_view::npos || head[first] == '{') return first;
    at = std::min(head.find('\n', first), head.size());
  }
  return std::string_view::npos;
}

Sniff sniff_ras(const std::string&, std::string_view head) {
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  const std::size_t first = begin_of_report(head);
  if (first == std::string_view::npos) return Sniff::no;
  head.remove_prefix(first);
  if (!contains(head, "\"communicators\"") && !contains(head, "\"communicators_count\"")) return Sniff::no;
  return contains(head, "\"nccl_version\"") || contains(head, "\"ranks_count\"") ? Sniff::sure : Sniff::maybe;
}

void read_ras(const Source& source, const ImportOptions& options, Evidence& out) {
  RasReader(source, options, out).read();
}

}  // namespace

Importer nccl_ras_json_importer() {
  return {"nccl-ras-json", "NCCL RAS reports as JSON (ncclras -f json)", sniff_ras, read_ras};
}

}  // namespace ddx::formats
