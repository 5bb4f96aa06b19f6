#include "traces/formats/nccl_tests_log.h"

#include <optional>

#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

constexpr std::size_t kMaxRows = 1U << 20;
constexpr std::size_t kMaxOpen = 4096;

// "#  Rank  0 Group  0 Pid    798 on     node-a device  0 [0x0f] NVIDIA H800"; older versions print no group.
std::optional<TestsBanner::Row> parse_row(std::string_view body) {
  const std::string_view text = trimmed(body);
  if (!text.starts_with("#")) return std::nullopt;
  const auto rank = rank_from(number_after(text, "Rank "));
  const auto pid = number_after(text, "Pid ");
  const auto host = rest_after(text, " on ");
  const auto device = number_after(text, " device ");
  if (!rank || !pid || !host || !device) return std::nullopt;
  TestsBanner::Row row;
  row.rank = *rank;
  row.pid = *pid;
  row.host = printable(word_at(*host), 255);
  row.device = *device;
  if (const std::size_t open = text.find('['); open != std::string_view::npos) {
    row.bus_id = printable(until(text.substr(open + 1), "]"), 64);
  }
  return row;
}

}  // namespace

void read_nccl_tests_line(const LogLine& line, bool interesting, NcclTestsState& state, LogEventWriter& events) {
  if (interesting && contains(line.body, "# Using devices")) {
    if (state.open.size() >= kMaxOpen) state.open.clear();
    state.open[line.source] = events.size();
    if (events.add(line, TestsBanner{}) == nullptr) state.open.erase(line.source);
    return;
  }
  const auto open = state.open.find(line.source);
  if (open == state.open.end()) return;
  auto row = parse_row(line.body);
  auto& banner = std::get<TestsBanner>(events.at(open->second).fact);
  if (row && banner.rows.size() < kMaxRows) {
    banner.rows.push_back(std::move(*row));
  } else if (!row && !trimmed(line.body).empty()) {
    state.open.erase(open);
  }
}

}  // namespace ddx::formats
