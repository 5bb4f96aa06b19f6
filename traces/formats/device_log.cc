#include "traces/formats/device_log.h"

#include <utility>

#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

constexpr std::size_t kMaxBusId = 32;
constexpr std::size_t kMaxText = 200;

// "0000:9d:00", "PCI:0000:9d:00", "0000:9d:00.0": without the "PCI:" and the function.
std::string bus_id(std::string_view text) {
  if (text.starts_with("PCI:")) text.remove_prefix(4);
  const std::string_view id = text.substr(0, text.find_first_not_of("0123456789abcdefABCDEF:"));
  std::string out = printable(id, kMaxBusId);
  while (!out.empty() && out.back() == ':') out.pop_back();
  return contains(out, ":") ? lower(out) : std::string();
}

}  // namespace

bool read_device_line(const LogLine& line, LogEventWriter& events) {
  const auto text = rest_after(line.body, "NVRM: ");
  if (!text) return false;
  DeviceFault fault;
  LogLine told = line;
  if (const auto xid = rest_after(*text, "Xid (")) {
    fault.bus_id = bus_id(*xid);
    const auto number = rest_after(*xid, "):");
    fault.xid = number ? number_at(trimmed(*number)) : std::nullopt;
    if (!fault.xid || *fault.xid < 0) return false;
    if (const auto pid = rest_after(*xid, "pid=")) told.pid = number_at(*pid);
    if (const auto comma = rest_after(*number, ",")) fault.text = printable(trimmed(*comma), kMaxText);
  } else if (contains(*text, "fallen off the bus")) {
    const auto gpu = rest_after(*text, "GPU ");
    if (gpu) fault.bus_id = bus_id(gpu->starts_with("at ") ? gpu->substr(3) : *gpu);
    fault.text = printable(trimmed(*text), kMaxText);
  } else {
    return false;
  }
  events.add(told, std::move(fault));
  return true;
}

}  // namespace ddx::formats
