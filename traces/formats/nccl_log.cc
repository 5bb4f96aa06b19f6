#include "traces/formats/nccl_log.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

constexpr std::size_t kMaxAdapters = 256;
constexpr std::size_t kMaxName = 255;

std::string name(std::string_view text) { return printable(trimmed(text), kMaxName); }

// "192.0.2.5<38560>", "node-a.lan<38560>": the address.
std::string_view without_port(std::string_view text) {
  text = until(word_at(text), "<");
  while (!text.empty() && (text.back() == ',' || text.back() == ':')) text.remove_suffix(1);
  return text;
}

std::optional<std::int64_t> in_range(std::optional<std::int64_t> value, std::int64_t low, std::int64_t high) {
  return value && *value >= low && *value <= high ? value : std::nullopt;
}

// "node-a:502:507": the host, and the process. Times and dates have colons, too: "10:15:20", "2026-11-29T10:15:20".
bool take_process(std::string_view word, NcclLine& line) {
  const auto digits_before = [word](std::size_t end) {
    std::size_t begin = end;
    while (begin > 0 && is_digit(word[begin - 1])) --begin;
    return begin;
  };
  const std::size_t thread = digits_before(word.size());
  if (thread < 2 || thread == word.size() || word[thread - 1] != ':') return false;
  const std::size_t process = digits_before(thread - 1);
  if (process < 2 || process == thread - 1 || word[process - 1] != ':') return false;
  const std::string_view host = word.substr(0, process - 1);
  if (host.front() == '[' || host.front() == '(' || host.find('/') != std::string_view::npos) return false;
  std::size_t used = 0;
  if (is_digit(host.front()) && (all_digits(host) || parse_date_time(word, used))) return false;
  const auto pid = number_at(word.substr(process));
  if (!pid || *pid <= 0) return false;
  line.host = host;
  line.pid = pid;
  return true;
}

// The writer of an event: NCCL's own prefix is closer to it than a launcher's.
LogLine as_written(const LogLine& line, const NcclLine& nccl) {
  LogLine written = line;
  if (!nccl.host.empty()) written.host = nccl.host;
  if (nccl.pid) written.pid = nccl.pid;
  return written;
}

LogEvent* add(LogEventWriter& events, const LogLine& line, const NcclLine& nccl, LogFact fact,
              std::string_view group = {}) {
  LogEvent* event = events.add(as_written(line, nccl), std::move(fact));
  if (event != nullptr) {
    event->cuda_device = nccl.device;
    event->group = printable(group, kMaxName);
  }
  return event;
}

NcclWriter writer_of(const LogLine& line, const NcclLine& nccl) {
  return {nccl.host.empty() ? line.host : nccl.host, nccl.pid.value_or(line.pid.value_or(0)), nccl.device};
}

// ---- INFO -----------------------------------------------------------------------------------------------------------

// "[Rank 3] ncclCommSplit comm 0x.. rank 1 nranks 2 .. parent 0x.. childCount 1 color 0 key 1- Init COMPLETE"
CommInit parse_init(std::string_view message) {
  CommInit init;
  init.complete = contains(message, "Init COMPLETE");
  if (message.starts_with("[")) {
    if (const std::size_t close = message.find("] "); close != std::string_view::npos) message.remove_prefix(close + 2);
  }
  const std::string_view first = word_at(message);
  if (first != "comm" && first != "Init") init.function = name(first);
  while (!message.empty()) {
    const std::string_view key = next_word(message);
    const std::string_view value = word_at(trimmed(message));
    const auto number = number_at(value);
    if (key == "comm") init.comm = name(value);
    if (key == "rank" && number) init.rank = *number;
    if ((key == "nranks" || key == "nRanks") && number) init.nranks = *number;
    if (key == "cudaDev") init.cuda_device = in_range(number, 0, INT32_MAX);
    if (key == "busId") init.bus_id = name(value);
    if (key == "commId") init.comm_id = name(value);
    if (key == "parent") init.parent = name(value);
    if (key == "childCount" || key == "splitCount") init.child_count = number;
    if (key == "color") init.color = number;
    if (key == "key") init.key = number;
  }
  return init;
}

bool read_init(const LogLine& line, const NcclLine& nccl, LogEventWriter& events, NcclOps& ops) {
  const std::string_view message = trimmed(nccl.message);
  if (!message.ends_with("Init COMPLETE") && !message.ends_with("Init START")) return false;
  CommInit init = parse_init(message);
  if (!in_range(init.rank, INT32_MIN, INT32_MAX) || !in_range(init.nranks, INT32_MIN, INT32_MAX)) {
    events.out().diagnostics.count("nccl_log.bad_init", DiagnosticSeverity::data_loss,
                                   events.out().inputs.front().path + ":" + std::to_string(line.number) +
                                       ": expected a rank and a size of 32 bits");
    return true;
  }
  ops.add_comm(writer_of(line, nccl), events.rank_of(line), init);
  const std::string group = init.comm_id.empty() ? init.comm : init.comm_id;
  add(events, line, nccl, std::move(init), group);
  return true;
}

// "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:192.0.2.5<0>", "NET/Socket : Using [0]eth0:.."
bool read_adapters(const LogLine& line, const NcclLine& nccl, LogEventWriter& events) {
  const auto list = rest_after(nccl.message, " : Using [");
  if (!nccl.message.starts_with("NET/") || !list) return false;
  NetAdapters adapters;
  const std::string_view net = until(nccl.message.substr(4), " :");
  std::string_view rest = nccl.message.substr(nccl.message.find(" : Using [") + 9);
  if (const std::size_t oob = rest.find("OOB "); oob != std::string_view::npos) {
    adapters.out_of_band = name(word_at(rest.substr(oob + 4)));
    rest = rest.substr(0, oob);
  }
  while (!rest.empty() && adapters.adapters.size() < kMaxAdapters) {
    const std::string_view word = next_word(rest);
    const auto index = word.starts_with("[") ? number_at(word.substr(1)) : std::nullopt;
    const std::size_t close = word.find(']');
    if (!index || close == std::string_view::npos) continue;
    NetAdapters::Adapter adapter;
    adapter.index = *index;
    const std::string_view named = word.substr(close + 1);
    adapter.name = name(until(named, ":/"));
    const std::size_t slash = named.rfind('/');
    adapter.transport = name(slash == std::string_view::npos ? net : until(named.substr(slash + 1), ";"));
    adapters.adapters.push_back(std::move(adapter));
  }
  add(events, line, nccl, std::move(adapters));
  return true;
}

// "Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/1/GDRDMA"
bool read_channel(const LogLine& line, const NcclLine& nccl, LogEventWriter& events) {
  const std::string_view message = nccl.message;
  if (!message.starts_with("Channel ")) return false;
  const auto via = rest_after(message, "] via NET/");
  const auto arrow = rest_after(message, "-> ");
  const auto from = rest_after(message, " : ");
  // Channels within a node say nothing of adapters, and there are many.
  if (!via || !arrow || !from) return true;
  NetChannel channel;
  channel.channel = number_at(message.substr(8)).value_or(0);
  channel.from = in_range(number_at(*from), 0, INT32_MAX).value_or(0);
  channel.to = in_range(number_at(*arrow), 0, INT32_MAX).value_or(0);
  channel.sends = contains(message, "[send]");
  const std::string_view path = *via;
  const std::size_t slash = path.find('/');
  channel.transport = "NET/" + name(path.substr(0, slash));
  if (slash != std::string_view::npos) channel.adapter = in_range(number_at(path.substr(slash + 1)), 0, INT32_MAX);
  add(events, line, nccl, std::move(channel));
  return true;
}

std::optional<std::int64_t> index_in(std::string_view word, const std::initializer_list<std::string_view>& names) {
  std::string upper(word.substr(0, 32));
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  std::int64_t index = 0;
  for (std::string_view known : names) {
    if (upper == known) return index;
    ++index;
  }
  return std::nullopt;
}

// "AllReduce: 1048576 Bytes -> Algo 1 proto 2 channel{Lo..Hi}={0..3}"; newer versions print names. TRACE: no operation.
bool read_tuning(const LogLine& line, const NcclLine& nccl, LogEventWriter& events) {
  const std::string_view message = nccl.message;
  const std::size_t at = message.find(" Bytes -> Algo ");
  if (at == std::string_view::npos) return false;
  TuningChoice choice;
  std::string_view before = message.substr(0, at);
  if (const std::size_t colon = before.find(": "); colon != std::string_view::npos) {
    choice.op = name(before.substr(0, colon));
    before = before.substr(colon + 2);
  }
  const auto bytes = number_at(trimmed(before));
  const std::string_view algorithm = word_at(*rest_after(message, " Algo "));
  const auto proto_text = rest_after(message, " proto ");
  if (!bytes || *bytes < 0 || !proto_text) return true;
  const std::string_view protocol = word_at(*proto_text);
  auto algorithm_number = number_at(algorithm);
  auto protocol_number = number_at(protocol);
  if (!algorithm_number) {
    algorithm_number =
        index_in(algorithm, {"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"});
  }
  if (!protocol_number) protocol_number = index_in(protocol, {"LL", "LL128", "SIMPLE"});
  if (!algorithm_number || !protocol_number) return true;
  choice.bytes = static_cast<std::uint64_t>(*bytes);
  choice.algorithm = *algorithm_number;
  choice.protocol = *protocol_number;
  add(events, line, nccl, std::move(choice));
  return true;
}

// "transport/net_socket.cc:368 -> 6", "group.cc:72 -> 3 [Async thread]"
bool read_return_code(const LogLine& line, const NcclLine& nccl, LogEventWriter& events) {
  std::string_view message = nccl.message;
  const std::string_view source = next_word(message);
  if (next_word(message) != "->") return false;
  const auto code = number_at(next_word(message));
  const std::size_t colon = source.rfind(':');
  if (!code || colon == std::string_view::npos || !number_at(source.substr(colon + 1))) return false;
  add(events, line, nccl, ReturnCode{name(source), *code});
  return true;
}

// ---- WARN -----------------------------------------------------------------------------------------------------------

// "Call to recv from 192.0.2.21<58355> failed : Broken pipe", "Connect to 192.0.2.1<4567> failed : Connection refused",
// "socketProgress: Connection closed by remote peer node-a.lan<41234>"
std::optional<NetSocketError> parse_socket_error(std::string_view message) {
  NetSocketError error;
  if (const auto known = socket_error_in(message)) error.error = *known;
  if (const auto call = rest_after(message, "Call to ")) {
    error.call = name(word_at(*call));
    static constexpr std::string_view kCalls[] = {"recv", "send", "connect", "accept", "poll", "getsockopt"};
    const bool socket_call =
        std::find(std::begin(kCalls), std::end(kCalls), std::string_view(error.call)) != std::end(kCalls);
    if (!socket_call && error.error.empty()) return std::nullopt;
    std::string_view rest = *call;
    next_word(rest);
    const std::string_view preposition = next_word(rest);
    if (preposition == "from" || preposition == "to") error.peer = name(without_port(trimmed(rest)));
  } else if (const auto target = rest_after(message, "onnect to ")) {
    error.call = "connect";
    error.peer = name(without_port(*target));
  } else if (const auto peer = rest_after(message, "remote peer ")) {
    error.peer = name(without_port(*peer));
  }
  if (error.error.empty()) {
    const auto text = rest_after(message, "failed : ");
    if (!text || error.call.empty()) return std::nullopt;
    error.error = name(*text);
  }
  return error;
}

std::optional<SharedMemoryError> parse_shared_memory(std::string_view message) {
  SharedMemoryError error;
  if (const auto segment = rest_after(message, "shared memory segment ")) {
    error.segment = name(word_at(*segment));
    error.size = count_after(message, "(size ");
  } else if (const auto extended = rest_after(message, "failed to extend ")) {
    error.segment = name(word_at(*extended));
    error.size = count_after(*extended, " to ");
  } else if (!contains(message, "posix_fallocate") && !contains(message, "shm_open") &&
             !contains(message, "/dev/shm/nccl-")) {
    return std::nullopt;
  }
  error.text = printable(message, LogEventWriter::kMaxText);
  return error;
}

// "NET/IB : Got completion from peer A<p> with status=12 opcode=1 len=0 vendor err 129 (Send)"; older: "with error
// 12,".
std::optional<NetCompletionError> parse_completion(std::string_view message) {
  if (!contains(message, "Got completion")) return std::nullopt;
  auto status = number_after(message, "status=");
  if (!status) status = number_after(message, "with error ");
  if (!status) return std::nullopt;
  NetCompletionError error;
  error.status = *status;
  if (const auto peer = rest_after(message, "from peer ")) error.peer = name(without_port(*peer));
  error.vendor_error = number_after(message, "vendor err ");
  return error;
}

std::optional<NetAdapterError> parse_adapter_error(std::string_view message) {
  NetAdapterError error;
  if (const auto device = rest_after(message, "Unable to open device ")) {
    error.device = name(until(word_at(*device), ":"));
  } else if (const std::size_t got = message.find("Got async"); got != std::string_view::npos) {
    // "NET/IB : mlx5_0:1 Got async event : port error"
    std::string_view before = trimmed(message.substr(0, got));
    const std::size_t blank = before.rfind(' ');
    error.device = name(until(blank == std::string_view::npos ? before : before.substr(blank + 1), ":"));
    if (error.device == "IB") error.device.clear();
  } else if (!contains(message, "NET/IB : No device found") && !contains(message, "No usable listening interface")) {
    return std::nullopt;
  }
  error.text = printable(message, LogEventWriter::kMaxText);
  return error;
}

std::optional<LogFact> parse_bootstrap(std::string_view message, std::optional<std::int64_t> device) {
  const bool duplicate = contains(message, "Duplicate GPU detected") || contains(message, "are using the same GPU");
  if (duplicate) {
    const auto rank = rank_from(number_after(message, "rank "));
    const auto other = rank_from(number_after(message, "and rank "));
    if (!rank || !other) return std::nullopt;
    DeviceDuplicate fact{*rank, *other, {}, device};
    if (const auto bus = rest_after(message, "CUDA device ")) fact.bus_id = name(until(word_at(*bus), ".,"));
    return fact;
  }
  if (contains(message, "already checked in")) {
    const auto rank = rank_from(number_after(message, "rank "));
    if (rank) return BootstrapDuplicate{*rank, number_after(message, " of ").value_or(0)};
  }
  if (contains(message, "mismatch in info from procs") || contains(message, "mismatch in rank count")) {
    auto text = rest_after(message, "nranks ");
    if (!text) text = rest_after(message, "from procs ");
    const auto first = text ? number_at(*text) : std::nullopt;
    auto second = text ? number_after(*text, " vs ") : std::nullopt;
    if (text && !second) second = number_after(*text, " : ");
    if (first && second) return BootstrapSizeMismatch{*first, *second};
  }
  if (contains(message, "Mismatched NCCL version")) {
    return VersionMismatch{printable(message, LogEventWriter::kMaxText)};
  }
  return std::nullopt;
}

LogFact parse_warning(const NcclLine& nccl) {
  const std::string_view message = nccl.message;
  if (auto fact = parse_bootstrap(message, nccl.device)) return std::move(*fact);
  if (auto fact = parse_completion(message)) return std::move(*fact);
  if (auto fact = parse_shared_memory(message)) return std::move(*fact);
  if (auto fact = parse_adapter_error(message)) return std::move(*fact);
  if (auto fact = parse_socket_error(message)) return std::move(*fact);
  return NcclWarning{name(nccl.source), printable(message, LogEventWriter::kMaxText)};
}

bool read_version(const LogLine& line, const NcclLine& nccl, LogEventWriter& events, NcclOps& ops) {
  const auto text = rest_after(line.body, "CCL version ");
  if (!text || text->empty() || !is_digit(text->front())) return false;
  const std::string version = name(until(*text, " ,;)"));
  ops.set_version(version);
  add(events, line, nccl, LibraryVersion{version});
  return true;
}

void read_info(const LogLine& line, const NcclLine& nccl, LogEventWriter& events, NcclOps& ops) {
  const std::string_view message = nccl.message;
  if (ops.add_op(line, writer_of(line, nccl), events.rank_of(line), message)) return;
  if (read_channel(line, nccl, events)) return;
  if (read_init(line, nccl, events, ops) || read_adapters(line, nccl, events)) return;
  if (read_return_code(line, nccl, events) || read_tuning(line, nccl, events)) return;
  if (read_version(line, nccl, events, ops)) return;
  if (auto error = parse_adapter_error(message)) add(events, line, nccl, std::move(*error));
}

}  // namespace

NcclLine split_nccl_line(std::string_view body) {
  NcclLine line;
  std::size_t mark = std::string_view::npos;
  for (std::string_view text : {"NCCL INFO", "NCCL WARN", "NCCL TRACE"}) {
    const std::size_t at = body.substr(0, mark).find(text);
    if (at == std::string_view::npos) continue;
    mark = at;
    line.level = text.substr(5);
    line.message = body.substr(at + text.size());
  }
  if (line.level.empty()) return line;
  line.message.remove_prefix(std::min(line.message.size(), line.message.find_first_not_of(' ')));
  std::string_view head = body.substr(0, mark);
  // What stands before "host:pid:tid" is another tool's prefix, which may look like one: the last before the device
  // counts. What stands behind it is the device and the source.
  while (!head.empty()) {
    const std::string_view word = next_word(head);
    if (line.pid && !line.device && word.starts_with("[")) {
      line.device = in_range(number_at(word.substr(1)), 0, INT32_MAX);
    } else if (!line.device && take_process(word, line)) {
      line.source = {};
    } else if (!line.pid) {
      continue;
    } else if (line.source.empty() && contains(word, ":")) {
      line.source = word;
    }
  }
  return line;
}

std::optional<LogFact> parse_quoted_warning(std::string_view text) {
  if (contains(text, "Duplicate GPU detected")) return parse_bootstrap(text, std::nullopt);
  if (auto fact = parse_completion(text)) return std::move(*fact);
  if (contains(text, "shared memory segment")) {
    if (auto fact = parse_shared_memory(text)) return std::move(*fact);
  }
  return std::nullopt;
}

void read_nccl_line(const LogLine& line, LogEventWriter& events, NcclOps& ops) {
  const NcclLine nccl = split_nccl_line(line.body);
  if (nccl.level == "INFO") {
    read_info(line, nccl, events, ops);
  } else if (nccl.level == "WARN") {
    add(events, line, nccl, parse_warning(nccl));
  } else if (nccl.level == "TRACE") {
    read_tuning(line, nccl, events);
  } else {
    read_version(line, nccl, events, ops);
  }
}

void name_shared_devices(LogEventWriter& events) {
  // By (communicator, host, bus id): who is there.
  std::map<std::tuple<std::string, std::string, std::string>, std::int64_t> first;
  struct Shared {
    std::int64_t rank;
    std::int64_t other;
    std::string bus_id;
  };
  std::map<std::pair<std::string, std::int64_t>, Shared> by_process;
  bool warned = false;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const LogEvent& event = events.at(i);
    const auto* warning = std::get_if<NcclWarning>(&event.fact);
    warned = warned || (warning != nullptr && contains(warning->text, "are using the same GPU"));
    const auto* init = std::get_if<CommInit>(&event.fact);
    if (init == nullptr || init->bus_id.empty() || init->comm_id.empty() || !event.pid) continue;
    const auto [at, added] = first.try_emplace({init->comm_id, event.host, init->bus_id}, init->rank);
    if (added || at->second == init->rank) continue;
    by_process.insert_or_assign({event.host, *event.pid}, Shared{init->rank, at->second, init->bus_id});
  }
  if (!warned) return;
  for (std::size_t i = 0; i < events.size(); ++i) {
    LogEvent& event = events.at(i);
    const auto* warning = std::get_if<NcclWarning>(&event.fact);
    if (warning == nullptr || !event.pid || !contains(warning->text, "are using the same GPU")) continue;
    const auto shared = by_process.find({event.host, *event.pid});
    if (shared == by_process.end()) continue;
    const Shared& found = shared->second;
    event.fact = DeviceDuplicate{RankId(found.rank), RankId(found.other), found.bus_id, event.cuda_device};
  }
}

}  // namespace ddx::formats
