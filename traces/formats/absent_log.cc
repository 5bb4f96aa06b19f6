#include "traces/formats/absent_log.h"

#include <utility>

#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

constexpr std::size_t kMostRanks = 65'536;
constexpr std::size_t kMaxWriters = 4'096;
constexpr unsigned kMaxListLines = 4'096;

// "4, 5, 6, 7 failed", "2, 3]": numbers with commas between; stops at whatever else comes.
std::vector<RankId> numbers(std::string_view text) {
  std::vector<RankId> ranks;
  text = trimmed(text);
  while (!text.empty() && is_digit(text.front()) && ranks.size() < kMostRanks) {
    const auto rank = rank_at(text);
    if (!rank) break;
    ranks.push_back(*rank);
    text = text.substr(std::min(text.size(), text.find_first_not_of("0123456789")));
    text = trimmed(text);
    if (!text.starts_with(",")) break;
    text = trimmed(text.substr(1));
  }
  return ranks;
}

// "[Rank 0]: Rank 5 failed to pass monitoredBarrier in 30000 ms", "[Rank 0]: Ranks 4, 5 failed to pass ...": of rank 0,
// which all others report to.
std::optional<ToldAbsent> parse_monitored_barrier(std::string_view body) {
  const std::size_t end = body.find(" failed to pass monitoredBarrier");
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view before = body.substr(0, end);
  const std::size_t word = before.rfind("Rank");
  if (word == std::string_view::npos) return std::nullopt;
  std::string_view list = before.substr(word + 4);
  if (list.starts_with("s")) list.remove_prefix(1);
  ToldAbsent absent{"monitoredBarrier", {}, numbers(list)};
  return absent.ranks.empty() ? std::nullopt : std::optional(std::move(absent));
}

// TORCH_NCCL_DESYNC_DEBUG: "[2] finished collective #4, but didn't join collective #5 (count from 1)", "To our best
// knowledge, ranks [2] are the lagging ranks that caused this timeout. They never joined any collectives".
std::optional<ToldAbsent> parse_desync_report(std::string_view body) {
  ToldAbsent absent{"PyTorch's desync report", {}, {}};
  if (const auto lagging = rest_after(body, "ranks [");
      lagging && contains(*lagging, "] are the lagging ranks that caused this timeout")) {
    absent.ranks = numbers(*lagging);
    absent.at = "any collective";
  } else if (const auto joined = rest_after(body, "but didn't join collective #")) {
    const std::size_t open = body.find('[');
    if (open == std::string_view::npos) return std::nullopt;
    // Prefixes are in brackets too: the list is the last one before "finished".
    const std::string_view before = body.substr(0, body.find("finished collective"));
    const std::size_t last = before.rfind('[');
    if (last == std::string_view::npos) return std::nullopt;
    absent.ranks = numbers(before.substr(last + 1));
    if (const auto number = number_at(*joined)) absent.at = "collective #" + std::to_string(*number);
  }
  return absent.ranks.empty() ? std::nullopt : std::optional(std::move(absent));
}

// Horovod before 0.16: "DistributedAllreduce_3 [missing ranks: 1, 3]".
std::optional<ToldAbsent> parse_missing_list(std::string_view body) {
  const auto list = rest_after(body, "[missing ranks:");
  if (!list) return std::nullopt;
  ToldAbsent absent{"Horovod's stall check", {}, numbers(*list)};
  return absent.ranks.empty() ? std::nullopt : std::optional(std::move(absent));
}

std::uint64_t key_of(const LogLine& line, const LogEventWriter& events) {
  const auto rank = events.rank_of(line);
  return rank ? static_cast<std::uint32_t>(rank->value) : line.source | (std::uint64_t{1} << 63);
}

void open_list(const LogLine& line, std::uint64_t key, const char* by, AbsentState& state, LogEventWriter& events) {
  if (state.open.size() >= kMaxWriters) return;
  const std::size_t index = events.size();
  if (events.add(line, ToldAbsent{by, {}, {}}) != nullptr) state.open[key] = {index, 0};
}

// "2: [DistributedOptimizer_Allreduce/grad.1, ...]"; "/job:jax_worker/replica:0/task:12".
std::optional<RankId> listed_rank(std::string_view text, std::string& at) {
  if (const auto task = rest_after(text, "/task:"); task && text.starts_with("/job:")) return rank_at(*task);
  const std::size_t colon = text.find(": [");
  if (colon == std::string_view::npos || !all_digits(text.substr(0, colon))) return std::nullopt;
  if (at.empty()) at = printable(until(text.substr(colon + 3), ",]"), 120);
  return rank_at(text);
}

bool continue_list(const LogLine& line, std::uint64_t key, AbsentState& state, LogEventWriter& events) {
  const auto open = state.open.find(key);
  if (open == state.open.end()) return false;
  auto& absent = std::get<ToldAbsent>(events.at(open->second.event).fact);
  const auto rank = listed_rank(trimmed(line.body), absent.at);
  if (!rank || ++open->second.lines > kMaxListLines) {
    state.open.erase(open);
    return false;
  }
  absent.ranks.push_back(*rank);
  return true;
}

}  // namespace

bool read_absent_line(const LogLine& line, bool interesting, AbsentState& state, LogEventWriter& events) {
  const std::uint64_t key = key_of(line, events);
  if (!state.open.empty() && continue_list(line, key, state, events)) return true;
  if (!interesting) return false;
  const std::string_view body = line.body;
  std::optional<ToldAbsent> absent = parse_monitored_barrier(body);
  if (!absent) absent = parse_desync_report(body);
  if (!absent) absent = parse_missing_list(body);
  if (absent) {
    events.add(line, std::move(*absent));
    return true;
  }
  if (trimmed(body) == "Missing ranks:") {
    open_list(line, key, "Horovod's stall check", state, events);
    return true;
  }
  if (const auto tasks = rest_after(body, "Some timed out task names:")) {
    open_list(line, key, "the coordination service's barrier", state, events);
    LogLine rest = line;
    rest.body = *tasks;
    if (!trimmed(*tasks).empty()) continue_list(rest, key, state, events);
    return true;
  }
  return false;
}

}  // namespace ddx::formats
