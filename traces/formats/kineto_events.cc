#include "traces/formats/kineto_events.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "traces/formats/flight_recorder_names.h"
#include "traces/formats/lenient_json.h"
#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

// Up to the year 2116, so that no sum or difference of two overflows.
bool is_time(std::optional<Nanos> time) {
  constexpr Nanos kLatest = std::numeric_limits<Nanos>::max() / 2;
  return time && *time <= kLatest && *time >= -kLatest;
}

constexpr std::size_t kMostName = 255;
constexpr std::size_t kMostGroups = 65'534;

// Where in the file the parser is: one for each open object or list.
enum class Where : std::uint8_t {
  skipped,
  top,
  events,
  event,
  args,
  args_list,
  info,
  groups,
  group,
  group_ranks,
  devices,
  device
};

bool is_communication(std::string_view kernel) {
  return contains(kernel, "nccl") || contains(kernel, "NCCL") || contains(kernel, "rccl");
}

// nlohmann's SAX interface: no tree is built.
class Events {
 public:
  Events(StringTable& strings, std::uint64_t max_events) : strings_(strings), max_events_(max_events) {}
  KinetoProfile profile;

  bool null() { return true; }
  bool boolean(bool flag) { return flag_value(flag); }
  bool number_integer(std::int64_t number) { return number_value(number, std::to_string(number)); }
  bool number_unsigned(std::uint64_t number) {
    return number_value(number > INT64_MAX ? std::nullopt : std::optional(static_cast<std::int64_t>(number)),
                        std::to_string(number));
  }
  bool number_float(double number, const std::string& text) {
    return number_value(std::abs(number) < 9e18 ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt,
                        text);
  }
  bool string(std::string& text);
  bool binary(std::vector<std::uint8_t>&) { return true; }
  bool key(std::string& text) {
    key_.swap(text);
    return true;
  }
  bool start_object(std::size_t) {
    path_.push_back(object_below());
    return true;
  }
  bool start_array(std::size_t) {
    path_.push_back(list_below());
    return true;
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    profile.broken_at = position;
    return false;
  }

 private:
  Where at() const { return path_.empty() ? Where::skipped : path_.back(); }
  Where object_below();
  Where list_below();
  bool close();
  bool number_value(std::optional<std::int64_t> number, const std::string& text);
  bool flag_value(bool flag);
  void event_number(std::optional<std::int64_t> number, const std::string& text);
  void argument(std::int64_t number);
  void check_argument(std::optional<std::int64_t> number, const std::string& text);
  void argument_text(std::string& text);
  void device_name(const std::string& text);
  void finish_event();
  void finish_kernel();
  bool has_room();

  StringTable& strings_;
  std::uint64_t max_events_;
  std::vector<Where> path_;
  std::string key_;   // of the innermost object
  std::string list_;  // a list of arguments as text
  std::string list_key_;
  bool several_devices_ = false;

  // The event that is being read.
  std::string name_, category_;
  bool complete_ = false;  // ph X
  std::optional<Nanos> time_, length_;
  std::optional<std::int64_t> external_id_, stream_;
  KinetoCall call_;
  std::string group_name_;
  KinetoGroup group_;
};

Where Events::object_below() {
  if (path_.empty()) return Where::top;
  switch (at()) {
    case Where::top: return key_ == "distributedInfo" ? Where::info : Where::skipped;
    case Where::events:
      name_.clear();
      category_.clear();
      complete_ = false;
      time_ = length_ = std::nullopt;
      external_id_ = stream_ = std::nullopt;
      call_ = {};
      return Where::event;
    case Where::event: return key_ == "args" ? Where::args : Where::skipped;
    case Where::groups:
      group_name_.clear();
      group_ = {};
      return Where::group;
    case Where::devices: return Where::device;
    default: return Where::skipped;
  }
}

Where Events::list_below() {
  if (path_.empty()) return Where::events;  // a bare list of events
  switch (at()) {
    case Where::top:
      if (key_ == "deviceProperties") return Where::devices;
      return key_ == "traceEvents" ? Where::events : Where::skipped;
    case Where::info: return key_ == "pg_config" ? Where::groups : Where::skipped;
    case Where::group: return key_ == "ranks" ? Where::group_ranks : Where::skipped;
    case Where::args:
      list_ = "[";
      list_key_ = key_;
      return Where::args_list;
    default: return Where::skipped;
  }
}

bool Events::close() {
  const Where where = at();
  if (!path_.empty()) path_.pop_back();
  if (where == Where::event) finish_event();
  if (where == Where::args_list) {
    list_ += ']';
    key_ = list_key_;
    argument_text(list_);
  }
  if (where == Where::group && !group_name_.empty() && profile.groups.size() < kMostGroups) {
    profile.groups.emplace(printable(group_name_, kMostName), std::move(group_));
  }
  return true;
}

bool Events::flag_value(bool flag) {
  if (at() == Where::args && key_ == "Is asynchronized op") call_.async = flag;
  return true;
}

bool Events::number_value(std::optional<std::int64_t> number, const std::string& text) {
  switch (at()) {
    case Where::top:
      if (key_ == "baseTimeNanoseconds") profile.base_time = number;
      break;
    case Where::event: event_number(number, text); break;
    case Where::args:
      check_argument(number, text);
      if (number) argument(*number);
      break;
    case Where::args_list:
      if (list_.size() > 1) list_ += ", ";
      list_ += text;
      break;
    case Where::info:
      if (key_ == "rank") profile.rank = number;
      if (key_ == "world_size") profile.world_size = number;
      break;
    case Where::group:
      if (key_ == "pg_size") group_.size = number;
      if (key_ == "pg_name" && number) group_name_ = std::to_string(*number);
      break;
    case Where::group_ranks:
      if (number && RankId::from(*number)) group_.ranks.emplace_back(*number);
      break;
    default: break;
  }
  return true;
}

void Events::event_number(std::optional<std::int64_t>, const std::string& text) {
  if (key_ == "ts") time_ = parse_micros(text);
  if (key_ == "dur") length_ = parse_micros(text);
}

// Sizes that cannot be: less than nothing, or beyond 64 bits.
void Events::check_argument(std::optional<std::int64_t> number, const std::string& text) {
  if (key_ != "In msg nelems" && key_ != "Out msg nelems") return;
  if (number && *number >= 0) return;
  if (call_.bad_number.empty()) call_.bad_number = key_ + " " + printable(text, 40);
}

void Events::argument(std::int64_t number) {
  if (key_ == "External id" || key_ == "external id") external_id_ = number;
  if (key_ == "stream") stream_ = number;
  if (key_ == "In msg nelems") call_.count_in = number;
  if (key_ == "Out msg nelems") call_.count_out = number;
  if (key_ == "Group size") call_.size = number;
  if (key_ == "Seq") call_.seq = number;
  if (key_ == "Src Rank") call_.source = number;
  if (key_ == "Dst Rank") call_.destination = number;
  if (key_ == "Process Group Name" || key_ == "Process Group ID") call_.group = std::to_string(number);
  if (key_ == "Is asynchronized op") call_.async = number != 0;
}

void Events::argument_text(std::string& text) {
  if (key_ == "Collective name") call_.name.swap(text);
  if (key_ == "dtype") call_.type.swap(text);
  if (key_ == "Process Group Name") call_.group.swap(text);
  if (key_ == "Process Group Description") call_.description.swap(text);
  if (key_ == "Process Group Ranks") call_.ranks.swap(text);
  if (key_ == "In split size") call_.splits_in.swap(text);
  if (key_ == "Out split size") call_.splits_out.swap(text);
  // Some writers put numbers in quotes.
  const auto number = parse_recorder_number(text);
  check_argument(number, text);
  if (number) argument(*number);
}

bool Events::string(std::string& text) {
  switch (at()) {
    case Where::event:
      if (key_ == "name") name_.swap(text);
      if (key_ == "cat") category_.swap(text);
      if (key_ == "ph") complete_ = text == "X";
      if (key_ == "ts") time_ = parse_micros(text);
      if (key_ == "dur") length_ = parse_micros(text);
      break;
    case Where::args: argument_text(text); break;
    case Where::info:
      if (key_ == "backend") profile.backend.swap(text);
      if (key_ == "nccl_version") profile.library_version.swap(text);
      break;
    case Where::device:
      if (key_ == "name") device_name(text);
      break;
    case Where::group:
      if (key_ == "pg_name") group_name_.swap(text);
      if (key_ == "pg_desc") group_.description.swap(text);
      if (key_ == "ranks") {
        if (auto ranks = parse_rank_list(text)) group_.ranks = std::move(*ranks);
      }
      break;
    case Where::top:
      if (key_ == "baseTimeNanoseconds") profile.base_time = parse_recorder_number(text);
      break;
    default: break;
  }
  return true;
}

// Which of several models a rank had is not said.
void Events::device_name(const std::string& text) {
  if (!several_devices_ && profile.device.empty()) profile.device = printable(text, kMostName);
  several_devices_ = several_devices_ || profile.device != printable(text, kMostName);
  if (several_devices_) profile.device.clear();
}

bool Events::has_room() {
  if (profile.records.size() + profile.kernels.size() < max_events_) return true;
  ++profile.left_out;
  return false;
}

void Events::finish_event() {
  ++profile.events;
  if (!complete_) return;
  if (name_ == "record_param_comms") {
    if (has_room()) profile.records.push_back({std::move(call_), time_, external_id_});
  } else if (category_ == "kernel" || category_ == "gpu_memcpy" || category_ == "gpu_memset" || category_ == "Kernel" ||
             category_ == "Memcpy" || category_ == "Memset") {
    finish_kernel();
  }
}

void Events::finish_kernel() {
  if (!has_room()) return;
  KinetoKernel kernel;
  kernel.timed = is_time(time_) && is_time(length_) && *length_ >= 0;
  if (!kernel.timed) ++profile.bad_times;
  kernel.communicates = is_communication(name_) || call_.has_arguments();
  kernel.name = strings_.intern(printable(name_, kMostName));
  if (kernel.timed) kernel.time = *time_;
  if (kernel.timed) kernel.length = *length_;
  if (stream_ && *stream_ >= 0 && *stream_ < UINT32_MAX) kernel.stream = static_cast<std::uint32_t>(*stream_);
  kernel.external_id = external_id_;
  if (call_.has_arguments()) {
    kernel.call = static_cast<std::uint32_t>(profile.kernel_calls.size());
    profile.kernel_calls.push_back(std::move(call_));
  }
  profile.kernels.push_back(kernel);
}

KinetoProfile parse(std::string_view text, StringTable& strings, std::uint64_t max_events) {
  Events events(strings, max_events);
  nlohmann::json::sax_parse(text.begin(), text.end(), &events);
  return std::move(events.profile);
}

}  // namespace

std::optional<Nanos> parse_micros(std::string_view text) {
  std::int64_t whole = 0;
  const char* const end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, whole);
  if (error != std::errc()) return std::nullopt;
  Nanos nanos = 0;
  if (__builtin_mul_overflow(whole, kMicrosecond, &nanos)) return std::nullopt;
  if (at == end) return nanos;
  if (*at != '.') {  // "1e3"
    double value = 0;
    const auto [after, wrong] = std::from_chars(text.data(), end, value);
    if (wrong != std::errc() || after != end || !(std::abs(value) < 9e15)) return std::nullopt;
    return static_cast<Nanos>(std::llround(value * 1000));
  }
  Nanos unit = 100, part = 0;
  for (++at; at != end && is_digit(*at); ++at, unit /= 10) part += (*at - '0') * unit;
  return text.front() == '-' ? nanos - part : nanos + part;
}

KinetoProfile read_kineto_events(std::string_view text, StringTable& strings, std::uint64_t max_events) {
  KinetoProfile profile = parse(text, strings, max_events);
  if (!profile.broken_at) return profile;
  const MendedJson mended = mend_json(text);
  if (mended.mends == 0) return profile;
  KinetoProfile again = parse(mended.text, strings, max_events);
  again.mends = mended.mends;
  return again;
}

}  // namespace ddx::formats
