#include "traces/formats/log_prefix.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

// Prefixes nest, but not without end.
constexpr int kMaxNesting = 12;
// A bracket that is longer is text, not a prefix.
constexpr std::size_t kMaxBracket = 160;

// Exactly `count` digits at `at`; -1 otherwise.
int fixed_number(std::string_view text, std::size_t at, std::size_t count) {
  if (at + count > text.size()) return -1;
  int value = 0;
  for (std::size_t i = at; i < at + count; ++i) {
    if (!is_digit(text[i])) return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

bool char_at(std::string_view text, std::size_t at, char c) { return at < text.size() && text[at] == c; }

// Days since 1970-01-01 of a date of the Gregorian calendar.
std::int64_t days_since_epoch(int year, int month, int day) {
  const int y = month <= 2 ? year - 1 : year;
  const int era = y / 400;
  const int year_of_era = y - era * 400;
  const int day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return std::int64_t{era} * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

constexpr Nanos kDay = 86'400 * kSecond;

// ".123456789" or ",123": nanoseconds; moves `at` behind it.
Nanos fraction(std::string_view text, std::size_t& at) {
  if (!(char_at(text, at, '.') || char_at(text, at, ',')) || at + 1 >= text.size() || !is_digit(text[at + 1])) return 0;
  Nanos value = 0;
  Nanos unit = kSecond;
  for (++at; at < text.size() && is_digit(text[at]); ++at) {
    unit /= 10;
    value += unit * (text[at] - '0');
  }
  return value;
}

// "Z", "+01:00", "-0800": seconds east of Greenwich.
int zone(std::string_view text, std::size_t& at) {
  if (char_at(text, at, 'Z')) {
    ++at;
    return 0;
  }
  if (!char_at(text, at, '+') && !char_at(text, at, '-')) return 0;
  const bool colon = char_at(text, at + 3, ':');
  const int hours = fixed_number(text, at + 1, 2);
  const int minutes = fixed_number(text, at + (colon ? 4 : 3), 2);
  if (hours < 0 || hours > 14 || minutes < 0 || minutes > 59) return 0;
  const int sign = text[at] == '-' ? -1 : 1;
  at += colon ? 6 : 5;
  return sign * (hours * 3600 + minutes * 60);
}

int month_of(std::string_view name) {
  static constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  for (std::size_t i = 0; i < kMonths.size(); ++i) {
    if (name.substr(0, 3) == kMonths[i]) return static_cast<int>(i) + 1;
  }
  return 0;
}

void set_time(LogLine& line, Nanos time, bool time_of_day) {
  // The innermost stamp is the program's own, but one with a date beats one without.
  if (line.time && !line.time_of_day && time_of_day) return;
  line.time = time;
  line.time_of_day = time_of_day;
}

void add_source(LogLine& line, std::string_view piece) {
  line.source = line.source * 1099511628211ULL ^ std::hash<std::string_view>()(piece);
}

// The length of "]", an optional colon, and one blank.
std::size_t closing(std::string_view text, std::size_t at) {
  ++at;
  if (char_at(text, at, ':')) ++at;
  if (char_at(text, at, ' ')) ++at;
  return at;
}

// "Sun Nov 29 10:00:00 2026", of ctime and of dmesg -T.
std::size_t take_ctime(std::string_view text, LogLine& line) {
  static constexpr std::string_view kDays = "Mon Tue Wed Thu Fri Sat Sun ";
  if (text.size() < 24 || !is_letter(text[0]) || kDays.find(text.substr(0, 4)) == std::string_view::npos) return 0;
  const int month = month_of(text.substr(4));
  const int day = text[8] == ' ' ? fixed_number(text, 9, 1) : fixed_number(text, 8, 2);
  const int year = fixed_number(text, 20, 4);
  std::size_t used = 0;
  const auto time = parse_time_of_day(text.substr(11), used);
  if (month == 0 || day < 1 || day > 31 || year < 1970 || year > 2200 || !time || used != 8) return 0;
  set_time(line, days_since_epoch(year, month, day) * kDay + *time, false);
  return 24;
}

// "E1129 10:00:00.123456789" of glog: a severity, month and day without year. Newer loggers drop a leading zero.
std::size_t take_glog(std::string_view text, LogLine& line) {
  if (text.size() < 12 || std::string_view("IWEF").find(text[0]) == std::string_view::npos) return 0;
  std::size_t at = 1;
  while (at < text.size() && is_digit(text[at])) ++at;
  if (at < 4 || at > 5 || !char_at(text, at, ' ')) return 0;
  std::size_t used = 0;
  const auto time = parse_time_of_day(text.substr(at + 1), used);
  if (!time) return 0;
  set_time(line, *time, true);
  return at + 1 + used;
}

bool ends_with_one_of(std::string_view word, std::initializer_list<std::string_view> endings) {
  const std::string text = lower(word);
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return text.ends_with(ending); });
}

bool names_a_host(std::string_view word) {
  return ends_with_one_of(word, {"node", "host", "worker", "pod", "machine", "server", "srv", "rack", "nid", "cn",
                                 "dgx", "instance", "vm"});
}

// What is counted, and is no role of a job's processes.
bool names_a_thing(std::string_view word) {
  return ends_with_one_of(word,
                          {"gpu",    "cuda",  "dev",  "device", "gcd",  "core",  "cpu",  "numa",   "nic",     "task",
                           "thread", "proc",  "pid",  "tid",    "step", "epoch", "iter", "client", "actor",   "process",
                           "job",    "shard", "line", "layer",  "run",  "stage", "port", "batch",  "attempt", "group"});
}

// "[default3]:", "[trainer0|4]:" of torchrun: the role with the local rank, then the global one where configured. What
// looks alike without being a role ("[node3]:", "[dgx01]:") is a launcher's label, and may be a host; it says no rank.
bool take_role(std::string_view content, LogLine& line) {
  std::size_t letters = 0;
  while (letters < content.size() && (is_letter(content[letters]) || content[letters] == '_')) ++letters;
  if (letters == 0 || letters == content.size() || !is_digit(content[letters])) return false;
  const std::size_t bar = content.find('|');
  const std::string_view digits = content.substr(letters, bar == std::string_view::npos ? bar : bar - letters);
  const auto local = all_digits(digits) ? rank_at(digits) : std::nullopt;
  if (!local) return false;
  if (bar != std::string_view::npos) {
    const auto global = rank_at(content.substr(bar + 1));
    if (global && global->value >= 0) line.rank = *global;
  } else if (names_a_host(content.substr(0, letters)) || (digits.size() > 1 && digits.front() == '0')) {
    if (line.host.empty()) line.host = content;
    return true;
  } else if (names_a_thing(content.substr(0, letters))) {
    return true;
  }
  line.local_rank = local->value;
  return true;
}

// "[rank3]", "[rank: 3]": the global rank.
bool take_rank(std::string_view content, LogLine& line) {
  if (!content.starts_with("rank") && !content.starts_with("RANK")) return false;
  content.remove_prefix(4);
  if (content.starts_with(":")) content.remove_prefix(1);
  if (content.starts_with(" ")) content.remove_prefix(1);
  const auto rank = all_digits(content) ? rank_at(content) : std::nullopt;
  if (!rank) return false;
  line.rank = rank;
  line.rank_is_task = false;
  return true;
}

// "[1,0]<stdout>:" of mpirun (job, rank), "[0]<stderr>:" of others that imitate it. The length with what follows.
std::size_t take_mpi_tag(std::string_view text, std::size_t close, std::string_view content, LogLine& line) {
  const std::string_view rest = text.substr(close + 1);
  std::size_t tag = 0;
  for (std::string_view name : {"<stdout>:", "<stderr>:", "<stddiag>:"}) {
    if (rest.starts_with(name)) tag = name.size();
  }
  if (tag == 0) return 0;
  const std::size_t comma = content.rfind(',');
  std::string_view digits = comma == std::string_view::npos ? content : content.substr(comma + 1);
  if (const auto named = rest_after(content, "mpirank:")) digits = *named;  // SageMaker: "[1,mpirank:2,algo-1]"
  const auto rank = rank_at(digits);
  if (!rank || rank->value < 0) return 0;
  line.rank = rank;
  line.rank_is_task = false;
  std::size_t at = close + 1 + tag;
  if (char_at(text, at, ' ')) ++at;
  return at;
}

bool take_bracket_time(std::string_view content, LogLine& line) {
  std::size_t used = 0;
  if (const auto time = parse_date_time(content, used)) {
    set_time(line, *time, false);
    // "[2026-11-29 10:00:00 TP3]" of SGLang: a rank where tensor parallelism is all there is.
    const std::string_view rest = trimmed(content.substr(used));
    if (rest.starts_with("TP") && all_digits(rest.substr(2))) line.rank = rank_at(rest.substr(2));
    return true;
  }
  if (const auto time = parse_time_of_day(content, used)) {
    set_time(line, *time, true);
    return used == content.size();
  }
  return take_ctime(content, line) > 0;
}

// "[E1129 10:00:00.123 ProcessGroupNCCL.cpp:632]" and, without a time, "[E ProcessGroupNCCL.cpp:828]".
bool take_bracket_glog(std::string_view content, LogLine& line) {
  if (take_glog(content, line) > 0) return true;
  return content.size() > 2 && content[1] == ' ' &&
         std::string_view("IWEF").find(content[0]) != std::string_view::npos && contains(content, ".cpp:");
}

std::size_t take_bracket(std::string_view text, LogLine& line) {
  const std::size_t close = text.substr(0, kMaxBracket).find(']');
  if (close == std::string_view::npos) return 0;
  const std::string_view content = text.substr(1, close - 1);
  if (content.empty()) return 0;
  if (const std::size_t used = take_mpi_tag(text, close, content, line)) {
    // Both streams of a rank are one source: a traceback stays together where its process mixes them.
    add_source(line, content);
    return used;
  }
  const bool launcher = take_rank(content, line) || (char_at(text, close + 1, ':') && take_role(content, line));
  if (launcher || content.starts_with("pod/")) {
    if (!launcher) line.host = until(content.substr(4), "/");
    add_source(line, content);
    return closing(text, close);
  }
  if (take_bracket_time(content, line) || take_bracket_glog(content, line)) return closing(text, close);
  return 0;
}

// "Worker_TP3 pid=78025", "VllmWorker rank=3 pid=78025" of vLLM: a rank where tensor parallelism is all there is.
std::optional<RankId> engine_rank(std::string_view content) {
  if (const auto stated = rest_after(content, "rank=")) return rank_at(*stated);
  if (!content.starts_with("Worker_TP")) return std::nullopt;
  const std::string_view digits = word_at(content.substr(9));
  return all_digits(digits) ? rank_at(digits) : std::nullopt;
}

// "(RayTrainWorker pid=615, ip=192.0.2.6) " of Ray.
std::size_t take_parenthesis(std::string_view text, LogLine& line) {
  const std::size_t close = text.substr(0, kMaxBracket).find(')');
  if (close == std::string_view::npos) return 0;
  const std::string_view content = text.substr(1, close - 1);
  const auto pid = number_after(content, "pid=");
  if (!pid) return 0;
  line.pid = pid;
  if (const auto ip = rest_after(content, "ip=")) line.host = until(*ip, ", ");
  if (const auto rank = engine_rank(content)) line.rank = rank;
  add_source(line, content);
  return close + (char_at(text, close + 1, ' ') ? 2 : 1);
}

// A label at the beginning of a line: the number or name in it, and the bytes that it takes.
struct LabelText {
  std::string_view value;
  std::size_t size = 0;  // 0: none
};

// "  3: "
LabelText task_label(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && at < 6 && text[at] == ' ') ++at;
  const std::size_t begin = at;
  while (at < text.size() && at < begin + 7 && is_digit(text[at])) ++at;
  if (at == begin || !char_at(text, at, ':') || (at + 1 < text.size() && text[at + 1] != ' ')) return {};
  return {text.substr(begin, at - begin), at + 1 + (char_at(text, at + 1, ' ') ? 1 : 0)};
}

// "[3] "
LabelText bracket_label(std::string_view text) {
  if (!char_at(text, 0, '[')) return {};
  std::size_t at = 1;
  while (at < text.size() && at < 8 && is_digit(text[at])) ++at;
  if (at == 1 || !char_at(text, at, ']') || (at + 1 < text.size() && text[at + 1] != ' ')) return {};
  return {text.substr(1, at - 1), at + 1 + (char_at(text, at + 1, ' ') ? 1 : 0)};
}

// "node-c: ". A word without a digit, dash or dot is a level or a program; one with the ending of a source is its name.
LabelText host_label(std::string_view text) {
  if (text.empty() || !is_letter(text.front())) return {};
  const std::string_view head = text.substr(0, 256);
  const std::size_t colon = head.find(':');
  if (colon == std::string_view::npos || (colon + 1 < text.size() && text[colon + 1] != ' ')) return {};
  const std::string_view word = head.substr(0, colon);
  if (!is_host_name(word) || word.find_first_of("0123456789-.") == std::string_view::npos) return {};
  for (std::string_view ending : {".py", ".cc", ".cpp", ".cu", ".sh", ".c", ".h"}) {
    if (word.ends_with(ending)) return {};
  }
  return {word, colon + 1 + (char_at(text, colon + 1, ' ') ? 1 : 0)};
}

LabelText label_at(std::string_view text, LineLabel label) {
  switch (label) {
    case LineLabel::task: return task_label(text);
    case LineLabel::bracket: return bracket_label(text);
    case LineLabel::host: return host_label(text);
    case LineLabel::none: break;
  }
  return {};
}

std::size_t take_label(std::string_view text, LineLabel label, LogLine& line) {
  const LabelText found = label_at(text, label);
  if (found.size == 0) return 0;
  if (label == LineLabel::host) {
    // One label a line: what follows is the program's.
    if (!line.host.empty()) return 0;
    line.host = found.value;
  } else if (!line.rank) {
    line.rank = rank_at(found.value);
    line.rank_is_task = true;
  }
  add_source(line, found.value);
  return found.size;
}

// "stdout F " behind the stamp of a container runtime.
std::size_t container_stream(std::string_view text) {
  if (text.size() < 9 || (!text.starts_with("stdout ") && !text.starts_with("stderr "))) return 0;
  return (text[7] == 'F' || text[7] == 'P') && text[8] == ' ' ? 9 : 0;
}

std::size_t take_plain_time(std::string_view text, LogLine& line) {
  std::size_t used = 0;
  if (const auto time = parse_date_time(text, used)) {
    set_time(line, *time, false);
  } else if (const auto day_time = parse_time_of_day(text, used)) {
    set_time(line, *day_time, true);
  } else {
    return 0;
  }
  if (used < text.size() && text[used] != ' ' && text[used] != '\t' && text[used] != '[' && text[used] != ':' &&
      text[used] != ']')
    return 0;
  if (char_at(text, used, ' ') || char_at(text, used, '\t') || char_at(text, used, ':')) ++used;
  return used + container_stream(text.substr(used));
}

// "E1129 10:00:00.123456 4711 file.cc:12] " without a bracket before it.
std::size_t take_bare_glog(std::string_view text, LogLine& line) {
  const std::size_t used = take_glog(text, line);
  if (used == 0) return 0;
  const std::size_t close = text.substr(0, kMaxBracket).find("] ");
  return close == std::string_view::npos ? 0 : close + 2;
}

// Whether the word behind the stamp of a line is the host that syslog writes there: not where a program wrote the stamp
// and its own words follow ("Fatal Python error", "[rank3]", "node-a:500:600" of NCCL).
bool is_syslog_host(std::string_view word, std::string_view rest) {
  if (!is_host_name(word)) return false;
  for (std::string_view level : {"DEBUG", "INFO", "WARN", "WARNING", "ERROR", "CRITICAL", "FATAL"}) {
    if (word == level) return false;
  }
  return word.find_first_of("0123456789-.") != std::string_view::npos || next_word(rest).ends_with(":");
}

// "Nov 29 10:00:00 node-a " of syslog.
std::size_t take_syslog(std::string_view text, LogLine& line) {
  if (text.size() < 17 || month_of(text) == 0 || text[3] != ' ') return 0;
  const int day = text[4] == ' ' ? fixed_number(text, 5, 1) : fixed_number(text, 4, 2);
  std::size_t used = 0;
  const auto time = parse_time_of_day(text.substr(7), used);
  if (day < 1 || !time || text[6] != ' ' || !char_at(text, 7 + used, ' ')) return 0;
  set_time(line, *time, true);
  const std::size_t at = 7 + used + 1;
  const std::string_view host = word_at(text.substr(at));
  const std::size_t end = at + host.size();
  if (!char_at(text, end, ' ') || !is_syslog_host(host, text.substr(end, 64))) return at;
  line.host = host;
  return end + 1;
}

// "INFO 11-29 10:00:00 [core.py:1]": a level before the time. The line keeps both; only the time is taken.
void read_level_time(std::string_view text, LogLine& line) {
  if (line.time) return;
  std::string_view word = next_word(text);
  if (word != "INFO" && word != "WARNING" && word != "ERROR" && word != "DEBUG" && word != "CRITICAL") return;
  word = next_word(text);
  std::size_t used = 0;
  if (parse_date_time(word, used)) return;
  if (word.size() == 5 && word[2] == '-') word = next_word(text);
  if (const auto time = parse_time_of_day(word, used); time && used == word.size()) set_time(line, *time, true);
}

// "[PG ID 0 PG GUID 0(default_pg) Rank 3]", "[Rank 3]": a rank within a process group. Only that of the default group,
// or one without a group, can be taken for the job's.
void read_library_rank(LogLine& line) {
  const std::string_view head = line.body.substr(0, 400);
  const std::size_t at = head.find("Rank ");
  if (at == std::string_view::npos) return;
  const std::size_t open = head.substr(0, at).rfind('[');
  if (open == std::string_view::npos) return;
  const std::string_view before = head.substr(open, at - open);
  if (before != "[" && !contains(before, "(default_pg)") && !contains(before, "PG GUID 0 ") && before != "[PG 0 ")
    return;
  const auto rank = rank_at(head.substr(at + 5));
  if (rank && rank->value >= 0) line.weak_rank = rank;
}

std::size_t take_one(std::string_view text, LineLabel label, LogLine& line) {
  if (text.empty()) return 0;
  const char c = text.front();
  if (c == '[') {
    if (const std::size_t used = take_bracket(text, line)) return used;
    return label == LineLabel::bracket ? take_label(text, label, line) : 0;
  }
  if (c == '(') return take_parenthesis(text, line);
  if (is_digit(c)) {
    if (const std::size_t used = take_plain_time(text, line)) return used;
  }
  if (label == LineLabel::task && (is_digit(c) || c == ' ')) {
    if (const std::size_t used = take_label(text, label, line)) return used;
  }
  if (!is_letter(c)) return 0;
  if (const std::size_t used = take_bare_glog(text, line)) return used;
  if (const std::size_t used = take_ctime(text, line)) return used + (char_at(text, used, ' ') ? 1 : 0);
  if (const std::size_t used = take_syslog(text, line)) return used;
  return label == LineLabel::host ? take_label(text, label, line) : 0;
}

// "train[123]: [rank2]: ", "2026-11-29 10:00:00 - root - ERROR - [rank2]: ": what another tool puts before torchrun's
// prefix need not be known. What is left behind it; all of it where there is none.
std::string_view behind_inner_rank(std::string_view text, LogLine& line) {
  const std::size_t at = text.substr(0, kMaxBracket).find("[rank");
  if (at == std::string_view::npos) return text;
  const std::size_t close = text.substr(0, kMaxBracket + 16).find("]:", at);
  if (close == std::string_view::npos || !take_rank(text.substr(at + 1, close - at - 1), line)) return text;
  add_source(line, text.substr(at, close - at));
  return text.substr(std::min(text.size(), closing(text, close)));
}

// How many lines begin with labels of one kind, and with how many different ones.
struct LabelCount {
  std::size_t lines = 0;
  std::set<std::string_view> values;
};

}  // namespace

std::optional<Nanos> parse_time_of_day(std::string_view text, std::size_t& used) {
  const int hours = fixed_number(text, 0, 2);
  const int minutes = fixed_number(text, 3, 2);
  const int seconds = fixed_number(text, 6, 2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59 || seconds < 0 || seconds > 60) return std::nullopt;
  if (text[2] != ':' || text[5] != ':') return std::nullopt;
  std::size_t at = 8;
  const Nanos part = fraction(text, at);
  used = at;
  return (std::int64_t{hours} * 3600 + minutes * 60 + seconds) * kSecond + part;
}

std::optional<Nanos> parse_date_time(std::string_view text, std::size_t& used) {
  const int year = fixed_number(text, 0, 4);
  if (year < 1970 || year > 2200 || text.size() < 19) return std::nullopt;
  const char separator = text[4];
  const int month = fixed_number(text, 5, 2);
  const int day = fixed_number(text, 8, 2);
  if ((separator != '-' && separator != '/') || text[7] != separator) return std::nullopt;
  if (month < 1 || month > 12 || day < 1 || day > 31) return std::nullopt;
  if (text[10] != ' ' && text[10] != 'T' && text[10] != '_') return std::nullopt;
  std::size_t at = 0;
  const auto time = parse_time_of_day(text.substr(11), at);
  if (!time) return std::nullopt;
  at += 11;
  const int east = zone(text, at);
  used = at;
  return days_since_epoch(year, month, day) * kDay + *time - east * kSecond;
}

LineLabel label_of_lines(std::string_view bytes) {
  static constexpr std::size_t kSample = 256 * 1024;
  static constexpr auto kLabels = std::to_array({LineLabel::task, LineLabel::bracket, LineLabel::host});
  bytes = bytes.substr(0, kSample);
  std::array<LabelCount, kLabels.size()> counts;
  std::size_t lines = 0;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (trimmed(line).empty()) continue;
    ++lines;
    for (std::size_t i = 0; i < kLabels.size(); ++i) {
      const LabelText found = label_at(line, kLabels[i]);
      if (found.size == 0) continue;
      ++counts[i].lines;
      counts[i].values.insert(found.value);
    }
  }
  // Lines of launchers and Slurm itself stand between those of the tasks.
  for (std::size_t i = 0; i < kLabels.size(); ++i) {
    const LabelCount& count = counts[i];
    if (count.lines < 2 || count.lines * 2 <= lines) continue;
    // Labels come again; what is counted up ("[100] loss 2.0") or differs on every line is no label.
    const bool repeats = count.lines >= count.values.size() * 2;
    if (kLabels[i] == LineLabel::task || repeats) return kLabels[i];
  }
  return LineLabel::none;
}

LogLine strip_prefixes(std::string_view text, LineLabel label) {
  LogLine line;
  for (int depth = 0; depth < kMaxNesting; ++depth) {
    const std::size_t used = take_one(text, label, line);
    if (used == 0) break;
    text.remove_prefix(used < text.size() ? used : text.size());
  }
  if (!line.rank || line.rank_is_task) text = behind_inner_rank(text, line);
  line.body = text;
  read_level_time(text.substr(0, 64), line);
  read_library_rank(line);
  return line;
}

std::string_view without_escapes(std::string_view line, std::string& scratch) {
  static constexpr char kEscape = '\x1b';
  if (line.find(kEscape) == std::string_view::npos) return line;
  scratch.clear();
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] != kEscape) {
      const std::size_t next = line.find(kEscape, at);
      scratch += line.substr(at, next - at);
      at = next == std::string_view::npos ? line.size() : next;
      continue;
    }
    ++at;
    if (at < line.size() && line[at] == '[') {
      for (++at; at < line.size() && (line[at] < '@' || line[at] > '~'); ++at) {
      }
    } else if (at < line.size() && line[at] == ']') {
      while (at < line.size() && line[at] != '\a') ++at;
    }
    if (at < line.size()) ++at;
  }
  return scratch;
}

}  // namespace ddx::formats
