#include "traces/formats/process_report.h"

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/printable.h"
#include "traces/formats/log_events.h"
#include "traces/formats/log_prefix.h"

namespace ddx::formats {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSchema = "\"ddx.processes/1\"";
constexpr std::int64_t kSigkill = 9, kSigterm = 15;

Sniff sniff(const std::string&, std::string_view head) {
  return head.substr(0, 256).find(kSchema) != std::string_view::npos ? Sniff::sure : Sniff::no;
}

std::optional<std::int64_t> integer(const Json& row, const char* name) {
  const auto at = row.find(name);
  return at != row.end() && at->is_number_integer() ? std::optional(at->get<std::int64_t>()) : std::nullopt;
}

std::string text(const Json& row, const char* name) {
  const auto at = row.find(name);
  return at != row.end() && at->is_string() ? printable_text(at->get<std::string>(), 300) : std::string();
}

struct Ended {
  std::int64_t pid = 0;
  std::optional<std::int64_t> signal;
  std::optional<std::int64_t> code;
  bool out_of_memory = false;
  std::string host;
  std::string when;
  std::uint64_t line = 0;
};

// The latest process of each rank that is no helper of another. Attempts of an elastic launcher follow each other.
std::map<std::int32_t, Ended> ends_of_ranks(const Json& rows) {
  std::map<std::int32_t, Ended> ends;
  std::uint64_t line = 1;  // wrap writes one process a line
  for (const Json& row : rows) {
    ++line;
    if (!row.is_object()) continue;
    const auto rank = integer(row, "rank");
    if (!rank || *rank < 0 || *rank > INT32_MAX || row.value("helper", Json()) == true) continue;
    if (text(row, "ended_by") == "wrap") continue;  // what wrap did is nobody's fault
    ends[static_cast<std::int32_t>(*rank)] = {.pid = integer(row, "pid").value_or(0),
                                              .signal = integer(row, "signal"),
                                              .code = integer(row, "exit_code"),
                                              .out_of_memory = row.value("out_of_memory", Json()) == true,
                                              .host = text(row, "host"),
                                              .when = text(row, "ended"),
                                              .line = line};
  }
  return ends;
}

ProcessEnd process_end(const Ended& ended) {
  ProcessEnd end;
  end.exit_code = ended.code;
  end.signal = ended.signal;
  end.kind = ended.signal ? ProcessEnd::Kind::signal : ProcessEnd::Kind::exit_code;
  if (ended.signal) {
    const char* name = ::strsignal(static_cast<int>(*ended.signal));
    end.what = *ended.signal == kSigkill ? "Killed"
               : name == nullptr         ? "signal " + std::to_string(*ended.signal)
                                         : name;
  } else {
    end.what = "exit code " + std::to_string(*ended.code);
  }
  if (ended.out_of_memory) {
    end.kind = ProcessEnd::Kind::oom_kill;
    end.what = "killed by the kernel's out-of-memory killer";
  }
  // Launchers send SIGTERM to the others when one has failed.
  end.secondary = ended.signal == kSigterm;
  return end;
}

void read(const Source& source, const ImportOptions& options, Evidence& out) {
  const Json whole = Json::parse(source.bytes, nullptr, false);
  if (!whole.is_object() || !whole.contains("processes") || !whole["processes"].is_array()) {
    throw Error(source.path, {}, "expected the list of processes that ddx wrap writes");
  }
  LogEventWriter events(out, options, {}, source.bytes.size());
  for (const auto& [rank, ended] : ends_of_ranks(whole["processes"])) {
    if (!ended.signal && ended.code.value_or(0) == 0) continue;
    LogLine line;
    line.number = ended.line;
    const ProcessEnd end = process_end(ended);
    const std::string told = "rank " + std::to_string(rank) + " (pid " + std::to_string(ended.pid) + "): " + end.what;
    line.body = told;
    line.rank = RankId{rank};
    line.pid = ended.pid;
    line.host = ended.host;
    std::size_t used = 0;
    line.time = parse_date_time(ended.when, used);
    events.add(line, end);
  }
  events.finish();
}

}  // namespace

Importer process_report_importer() {
  return {.name = "ddx-processes",
          .description = "how a job's processes ended: processes.json of ddx wrap",
          .sniff = sniff,
          .read = read};
}

}  // namespace ddx::formats
