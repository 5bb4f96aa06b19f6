#include "live/launch/process_report.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>

namespace ddx::live {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string time_text(Nanos time) {
  if (time == 0) return "null";
  const std::time_t seconds = time / kSecond;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("\"{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z\"", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, time % kSecond / kMillisecond);
}

// From outside, and not by wrap.
bool was_killed(const ProcessRecord& record) {
  return record.status && WIFSIGNALED(*record.status) && WTERMSIG(*record.status) == SIGKILL && !record.by_wrap;
}

// Absent is null: what is not known is not said.
std::string row(const ProcessRecord& record, const std::string& host, bool for_memory) {
  const bool killed = record.status && WIFSIGNALED(*record.status);
  std::string code = "null";
  if (record.status && !killed) code = std::to_string(WEXITSTATUS(*record.status));
  if (!record.status && record.told && record.ended != 0) code = std::to_string(*record.told & 0xff);
  const auto pair = [](const char* name, const std::string& value) { return fmt::format("\"{}\": {}", name, value); };
  const std::string pairs[] = {pair("pid", std::to_string(record.pid)),
                               pair("parent", std::to_string(record.parent)),
                               pair("rank", record.rank < 0 ? "null" : std::to_string(record.rank)),
                               pair("helper", record.is_helper ? "true" : "false"),
                               pair("host", quoted(host)),
                               pair("command", quoted(record.command)),
                               pair("exit_code", code),
                               pair("signal", killed ? std::to_string(WTERMSIG(*record.status)) : "null"),
                               pair("out_of_memory", for_memory ? "true" : "false"),
                               pair("ended_by", record.by_wrap ? "\"wrap\"" : "null"),
                               pair("started", time_text(record.started)),
                               pair("ended", time_text(record.ended))};
  return fmt::format("  {{{}}}", fmt::join(pairs, ", "));
}

}  // namespace

bool write_process_report(const std::string& folder, const ProcessTable& table, std::uint64_t memory_kills) {
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  std::ofstream file(folder + "/processes.json", std::ios::trunc);
  file << "{\"schema\": \"ddx.processes/1\", \"processes\": [\n";
  const auto& records = table.records();
  const auto killed = static_cast<std::uint64_t>(std::count_if(records.begin(), records.end(), was_killed));
  bool first = true;
  for (const ProcessRecord& record : table.records()) {
    file << (first ? "" : ",\n") << row(record, host, was_killed(record) && killed <= memory_kills);
    first = false;
  }
  file << "\n]}\n" << std::flush;
  return file.good();
}

}  // namespace ddx::live
