#include "traces/formats/torch_log.h"

#include <functional>

#include "traces/formats/log_scan.h"
#include "traces/formats/nccl_log.h"

namespace ddx::formats {
namespace {

constexpr std::size_t kMaxName = 255;

std::string name(std::string_view text) { return printable(trimmed(text), kMaxName); }

std::optional<Nanos> scaled(std::optional<std::int64_t> value, Nanos unit) {
  if (!value || *value < 0 || *value > INT64_MAX / unit) return std::nullopt;
  return *value * unit;
}

// "1 day, 0:10:00", "0:10:00.500000": Python's timedelta.
std::optional<Nanos> timedelta(std::string_view text) {
  Nanos days = 0;
  if (const std::size_t comma = text.find(", "); comma < 16 && contains(text.substr(0, comma), "day")) {
    days = number_at(text).value_or(0);
    if (days < 0 || days > 100'000) return std::nullopt;
    text.remove_prefix(comma + 2);
  }
  std::int64_t parts[3] = {0, 0, 0};
  for (int i = 0; i < 3; ++i) {
    const auto value = number_at(text);
    if (!value || *value < 0 || *value > 100'000) return std::nullopt;
    parts[i] = *value;
    text = text.substr(until(text, ":").size());
    if (i == 2) break;
    if (text.empty()) return std::nullopt;
    text.remove_prefix(1);
  }
  return (((days * 24 + parts[0]) * 60 + parts[1]) * 60 + parts[2]) * kSecond;
}

// "[PG ID 2 PG GUID 3(mesh_dp) Rank 4]" -> "3"; "[PG 0 (default_pg) Rank 3]", "[PG 5 Rank 0]" -> the number.
std::string group_of(std::string_view body) {
  auto text = rest_after(body, "PG GUID ");
  if (!text) text = rest_after(body, "[PG ");
  if (!text || text->starts_with("ID ")) return {};
  return name(until(*text, " (]"));
}

// "TensorShape=[2, 3]": the product, as older versions print no element counts.
std::optional<std::uint64_t> shape_product(std::string_view text) {
  auto shape = rest_after(text, "TensorShape=[");
  if (!shape) return std::nullopt;
  std::string_view rest = until(*shape, "]");
  std::uint64_t product = 1;
  while (!rest.empty()) {
    const auto value = number_at(trimmed(rest));
    if (!value || *value < 0) return std::nullopt;
    const auto factor = static_cast<std::uint64_t>(*value);
    if (factor != 0 && product > UINT64_MAX / factor) return std::nullopt;
    product *= factor;
    const std::size_t comma = rest.find(',');
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return product;
}

WatchdogTimeout parse_timeout(std::string_view text) {
  WatchdogTimeout timeout;
  timeout.seq = count_after(text, "SeqNum=").value_or(0);
  if (const auto type = rest_after(text, "OpType=")) timeout.op_type = name(until(*type, ",) "));
  timeout.numel_in = count_after(text, "NumelIn=");
  timeout.numel_out = count_after(text, "NumelOut=");
  if (!timeout.numel_in) timeout.numel_in = shape_product(text);
  timeout.timeout = scaled(number_after(text, "Timeout(ms)="), kMillisecond);
  timeout.elapsed = scaled(number_after(text, "ran for "), kMillisecond);
  return timeout;
}

// "last enqueued work: 12", "last enqueued NCCL work: 12"; -1 is none yet.
std::optional<std::uint64_t> last_work(std::string_view text, std::string_view key) {
  const auto rest = rest_after(text, key);
  if (!rest) return std::nullopt;
  const auto value = number_after(rest->substr(0, 48), "work:");
  if (!value) return std::nullopt;
  return *value < 0 ? 0 : static_cast<std::uint64_t>(*value);
}

std::optional<WatchdogStatus> parse_status(std::string_view text) {
  WatchdogStatus status;
  status.last_enqueued = last_work(text, "ast enqueued");  // the dump signal's line begins a sentence with it
  status.last_started = last_work(text, "last started");
  status.last_completed = last_work(text, "last completed");
  if (!status.last_enqueued && !status.last_completed) return std::nullopt;
  for (std::string_view key :
       {"work sequence id:", "watchdog at work:", "Timeout at NCCL work:", "Timeout at collective:"}) {
    if (!status.failed_seq) status.failed_seq = count_after(text, key);
  }
  return status;
}

bool same(const WatchdogStatus& a, const WatchdogStatus& b) {
  return a.failed_seq == b.failed_seq && a.last_enqueued == b.last_enqueued && a.last_started == b.last_started &&
         a.last_completed == b.last_completed;
}

// One key a writer. Lines without a rank are kept apart by their prefix.
std::uint64_t writer_key(const LogLine& line, const LogEventWriter& events) {
  const auto rank = events.rank_of(line);
  return rank ? static_cast<std::uint32_t>(rank->value) : line.source | (std::uint64_t{1} << 63);
}

bool read_timeout(const LogLine& line, TorchState& state, LogEventWriter& events) {
  auto text = rest_after(line.body, "Watchdog caught collective operation timeout:");
  // "Work WorkNCCL(SeqNum=..) timed out in blocking wait (TORCH_NCCL_BLOCKING_WAIT=1).": no watchdog, the caller
  // itself.
  if (!text && contains(line.body, " timed out in blocking wait")) text = rest_after(line.body, "Work ");
  if (!text) return false;
  TorchState::Last& last = state.by_writer[writer_key(line, events)];
  WatchdogTimeout timeout = parse_timeout(*text);
  const std::string group = group_of(line.body);
  // The exception that follows quotes the line: one timeout, and now its group.
  if (last.timeout) {
    LogEvent& earlier = events.at(*last.timeout);
    const auto& fact = std::get<WatchdogTimeout>(earlier.fact);
    const bool group_fits = earlier.group.empty() || group.empty() || earlier.group == group;
    if (fact.seq == timeout.seq && fact.op_type == timeout.op_type && group_fits) {
      if (earlier.group.empty()) earlier.group = group;
      return true;
    }
  }
  last.timeout = events.size();
  LogEvent* event = events.add(line, std::move(timeout));
  if (event == nullptr) {
    last.timeout.reset();
  } else {
    event->group = group;
  }
  return true;
}

bool read_status(const LogLine& line, TorchState& state, LogEventWriter& events) {
  if (!contains(line.body, "ast enqueued") && !contains(line.body, "last completed")) return false;
  auto status = parse_status(line.body);
  if (!status) return false;
  TorchState::Last& last = state.by_writer[writer_key(line, events)];
  const std::string group = group_of(line.body);
  if (last.timeout && status->failed_seq && !group.empty()) {
    LogEvent& timeout = events.at(*last.timeout);
    if (timeout.group.empty() && std::get<WatchdogTimeout>(timeout.fact).seq == *status->failed_seq)
      timeout.group = group;
  }
  if (last.status && events.at(*last.status).group == group &&
      same(std::get<WatchdogStatus>(events.at(*last.status).fact), *status)) {
    return true;
  }
  last.status = events.size();
  LogEvent* event = events.add(line, *status);
  if (event == nullptr) {
    last.status.reset();
  } else {
    event->group = group;
  }
  return true;
}

// "[rank3]: Duplicate GPU detected : rank 3 and rank 0 both on CUDA device f000": NCCL's last error as PyTorch's
// exception quotes it. NCCL's own line is read as such.
bool read_quoted_warning(const LogLine& line, LogEventWriter& events) {
  if (contains(line.body, "NCCL WARN")) return false;
  auto fact = parse_quoted_warning(line.body);
  if (!fact) return false;
  events.add(line, std::move(*fact));
  return true;
}

bool read_stuck(const LogLine& line, LogEventWriter& events) {
  const auto seconds = number_after(line.body, "watchdog got stuck for ");
  const auto stuck = scaled(seconds, kSecond);
  if (!stuck) return false;
  if (LogEvent* event = events.add(line, HeartbeatStuck{*stuck})) event->group = group_of(line.body);
  return true;
}

// "Waiting in store based barrier to initialize process group for rank: 0, key: store_based_barrier_key:1
// (world_size=2, worker_count=1, timeout=0:10:00)"; newer versions say num_workers_joined and "on rank 0".
bool read_store_barrier(const LogLine& line, LogEventWriter& events) {
  const std::string_view body = line.body;
  const std::size_t at = body.find("store based barrier");
  const auto key = rest_after(body, "key: ");
  if (at == std::string_view::npos || !key) return false;
  const std::string_view rest = body.substr(at);
  auto rank_text = rest_after(rest, "rank: ");
  if (!rank_text) rank_text = rest_after(rest, "rank ");
  const auto rank = rank_text ? rank_at(*rank_text) : std::nullopt;
  const auto world = number_after(rest, "world_size=");
  auto joined = number_after(rest, "worker_count=");
  if (!joined) joined = number_after(rest, "num_workers_joined=");
  if (!rank || !world || !joined) return false;
  StoreBarrier barrier;
  barrier.rank = *rank;
  barrier.key = name(until(*key, " ("));
  barrier.world_size = *world;
  barrier.worker_count = *joined;
  if (const auto timeout = rest_after(rest, "timeout=")) barrier.timeout = timedelta(until(*timeout, ")"));
  barrier.timed_out = contains(body.substr(0, at), "Timed out");
  if (LogEvent* event = events.add(line, std::move(barrier))) event->rank = *rank;
  return true;
}

bool read_store_join(const LogLine& line, LogEventWriter& events) {
  const auto key = rest_after(line.body, "Added key: ");
  const auto text = rest_after(line.body, "to store for rank: ");
  const auto rank = text ? rank_at(*text) : std::nullopt;
  if (!key || !rank) return false;
  if (LogEvent* event = events.add(line, StoreJoin{*rank, name(word_at(*key))})) event->rank = *rank;
  return true;
}

// "Timed out after 601 seconds waiting for clients. 1/2 clients joined.": of the store's host, which is rank 0.
bool read_store_clients(const LogLine& line, LogEventWriter& events) {
  const auto text = rest_after(line.body, "waiting for clients. ");
  const auto older = text ? text : rest_after(line.body, "waiting for workers. ");
  if (!older || !contains(line.body, "Timed out after ")) return false;
  const auto joined = number_at(*older);
  const auto world = number_after(*older, "/");
  if (!joined || !world) return false;
  StoreBarrier barrier;
  barrier.rank = events.rank_of(line).value_or(RankId(0));
  barrier.key = "clients of the store";
  barrier.world_size = *world;
  barrier.worker_count = *joined;
  barrier.timeout = scaled(number_after(line.body, "Timed out after "), kSecond);
  barrier.timed_out = true;
  events.add(line, std::move(barrier));
  return true;
}

// "using GPU 0 to perform barrier as devices used by this process are currently unknown", and later wordings.
bool read_barrier_device(const LogLine& line, LogEventWriter& events) {
  const std::size_t at = line.body.find("currently unknown");
  if (at == std::string_view::npos) return false;
  const std::string_view before = line.body.substr(0, at);
  const std::size_t using_at = before.rfind("using ");
  if (using_at == std::string_view::npos) return false;
  std::string_view rest = before.substr(using_at + 6);
  std::optional<std::int64_t> device;
  for (int words = 0; words < 3 && !device; ++words) device = number_at(trimmed(next_word(rest)));
  if (!device) return false;
  LogEvent* event = events.add(line, BarrierDeviceGuess{*device});
  if (event == nullptr) return true;
  event->group = group_of(line.body);
  // "Rank 1 using best-guess GPU 0": older versions say the rank in the text.
  if (!event->rank) {
    if (const auto rank = rest_after(before, "Rank ")) event->rank = rank_at(*rank);
  }
  return true;
}

// ---- ProcessGroupWrapper --------------------------------------------------------------------------------------------

std::string fingerprint_shape(std::string_view text) {
  const auto shape = rest_after(text, "TensorShape=");
  if (!shape) return {};
  const std::size_t end = shape->find(", TensorDtypes");
  if (end != std::string_view::npos) return name(shape->substr(0, end));
  return name(shape->substr(0, until(*shape, "]").size() + 1));
}

// "TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda, ..)": the device's name.
std::string fingerprint_device(std::string_view text) {
  const auto types = rest_after(text, "TensorDeviceTypes=");
  const auto device = types ? rest_after(*types, "device=") : std::nullopt;
  return device ? name(until(*device, ",) ")) : std::string();
}

// `text` begins at the "N" of "Rank N is running ..." and ends before the other rank.
std::optional<CollectiveFingerprint> parse_fingerprint(std::string_view text) {
  const auto rank = rank_at(text);
  const auto what = rest_after(text, "collective: ");
  if (!rank || !what || what->empty()) return std::nullopt;
  CollectiveFingerprint print;
  print.rank = *rank;
  const auto open = rest_after(*what, "CollectiveFingerPrint(");
  if (!open) {
    // Older versions name the other side's operation only.
    print.op_type = name(until(*what, ".,) "));
    return print;
  }
  print.seq = count_after(*open, "SequenceNumber=");
  if (const auto type = rest_after(*open, "OpType=")) print.op_type = name(until(*type, ",) "));
  print.shape = fingerprint_shape(*open);
  if (const auto types = rest_after(*open, "TensorDtypes=")) print.dtypes = name(until(*types, ",) "));
  print.devices = fingerprint_device(*open);
  return print;
}

bool read_wrapper(const LogLine& line, LogEventWriter& events) {
  auto mismatch = parse_wrapper_mismatch(line.body);
  if (!mismatch) return false;
  const RankId reporter = mismatch->reporter.rank;
  LogEvent* event = events.add(line, std::move(*mismatch));
  if (event != nullptr && !event->rank) event->rank = reporter;
  return true;
}

// DeepSpeed: "WORLD INFO DICT: {'node-a': [0, 1], 'node-b': [0, 1]}": ranks in the order written.
bool read_world_info(const LogLine& line, TorchState& state, LogEventWriter& events) {
  auto text = rest_after(line.body, "WORLD INFO DICT:");
  if (!text) return false;
  if (!state.worlds.insert(std::hash<std::string_view>()(*text)).second) return true;
  std::string_view rest = *text;
  std::int64_t rank = 0;
  while (static_cast<std::size_t>(rank) < kMaxRanks) {
    const std::size_t open = rest.find_first_of("'\"");
    if (open == std::string_view::npos) break;
    rest.remove_prefix(open + 1);
    const std::string host = name(until(rest, "'\""));
    const std::size_t list = rest.find('[');
    const std::size_t close = rest.find(']');
    if (list == std::string_view::npos || close == std::string_view::npos || close < list) break;
    std::string_view devices = rest.substr(list + 1, close - list - 1);
    rest.remove_prefix(close + 1);
    while (!trimmed(devices).empty() && static_cast<std::size_t>(rank) < kMaxRanks) {
      if (events.add(line, RankAddress{RankId(rank), host, {}}) == nullptr) return true;
      ++rank;
      const std::size_t comma = devices.find(',');
      devices = comma == std::string_view::npos ? std::string_view() : devices.substr(comma + 1);
    }
  }
  return true;
}

}  // namespace

std::optional<WrapperMismatch> parse_wrapper_mismatch(std::string_view text) {
  static constexpr std::string_view kDifference = "Collectives differ in the following aspects:";
  const auto detected = rest_after(text, "etected mismatch between collectives on ranks.");
  const auto difference = rest_after(text, kDifference);
  if (!detected) return std::nullopt;
  std::string_view sides = detected->substr(0, detected->find(kDifference));
  const auto first = rest_after(sides, "Rank ");
  if (!first) return std::nullopt;
  const std::size_t but = first->find("but Rank ");
  auto reporter = parse_fingerprint(first->substr(0, but));
  if (!reporter) return std::nullopt;
  WrapperMismatch mismatch;
  mismatch.reporter = std::move(*reporter);
  if (but != std::string_view::npos) mismatch.other = parse_fingerprint(first->substr(but + 9));
  if (difference) mismatch.difference = printable(trimmed(*difference), LogEventWriter::kMaxText);
  return mismatch;
}

bool read_torch_line(const LogLine& line, TorchState& state, LogEventWriter& events) {
  // The quote of a timeout in an exception comes with the status of its group, or alone.
  const bool timeout = read_timeout(line, state, events);
  if (read_status(line, state, events) || timeout) return true;
  return read_quoted_warning(line, events) || read_stuck(line, events) || read_store_barrier(line, events) ||
         read_store_join(line, events) || read_store_clients(line, events) || read_barrier_device(line, events) ||
         read_wrapper(line, events) || read_world_info(line, state, events);
}

}  // namespace ddx::formats
