// Hosts of one job that use different adapters: a channel that begins at an adapter the other side lacks has no
// partner.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analyzers/hosts/hosts.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

struct HostAdapters {
  std::set<std::string> names;
  std::set<std::string> kinds;  // "RoCE", "IB"
  const LogEvent* event = nullptr;
};

std::string host_of(const Evidence& evidence, const LogEvent& event) {
  return event.host.empty() ? file_name(evidence, event) : event.host;
}

std::map<std::string, HostAdapters> by_host(const Evidence& evidence) {
  std::map<std::string, HostAdapters> hosts;
  for (const auto& [event, fact] : seen<NetAdapters>(evidence)) {
    HostAdapters& host = hosts[host_of(evidence, *event)];
    if (host.event == nullptr) host.event = event;
    for (const auto& adapter : fact->adapters) {
      host.names.insert(adapter.name);
      host.kinds.insert(adapter.transport);
    }
  }
  return hosts;
}

bool cannot_open(const NetAdapterError& fact) {
  return contains_text(fact.text, "unable to open") || contains_text(fact.text, "failed to open") ||
         contains_text(fact.text, "no device found") || contains_text(fact.text, "permission");
}

struct Broken {
  std::string host;
  std::string device;
  const LogEvent* event;
};

std::vector<Broken> unopened(const Evidence& evidence) {
  std::vector<Broken> all;
  std::set<std::pair<std::string, std::string>> told;
  for (const auto& [event, fact] : seen<NetAdapterError>(evidence)) {
    if (!cannot_open(*fact)) continue;
    const std::string host = host_of(evidence, *event);
    if (told.insert({host, fact->device}).second) all.push_back({host, fact->device, event});
  }
  return all;
}

// "Channel 01 leaves node-a by adapter 1 and enters node-b by adapter 0", where each side says one thing only.
struct Crossing {
  std::string text;
  const LogEvent* send;
  const LogEvent* receive;
};

std::vector<Crossing> crossings(const Evidence& evidence) {
  struct Side {
    const LogEvent* event = nullptr;
    std::optional<std::int64_t> adapter;
    std::string transport;
    bool ambiguous = false;
  };
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  std::map<Key, std::pair<Side, Side>> channels;
  for (const auto& [event, fact] : seen<NetChannel>(evidence)) {
    auto& pair = channels[{fact->channel, fact->from, fact->to}];
    Side& side = fact->sends ? pair.first : pair.second;
    if (side.event != nullptr && (side.adapter != fact->adapter || side.transport != fact->transport))
      side.ambiguous = true;
    side.event = event;
    side.adapter = fact->adapter;
    side.transport = fact->transport;
  }
  std::vector<Crossing> found;
  for (const auto& [key, sides] : channels) {
    const auto& [send, receive] = sides;
    if (send.event == nullptr || receive.event == nullptr || send.ambiguous || receive.ambiguous) continue;
    const auto shown = [](const Side& side) {
      return side.transport + (side.adapter ? fmt::format("/{}", *side.adapter) : std::string());
    };
    if (shown(send) == shown(receive)) continue;
    found.push_back(
        {fmt::format("channel {:02} leaves {} by {} and enters {} by {}", std::get<0>(key),
                     host_of(evidence, *send.event), shown(send), host_of(evidence, *receive.event), shown(receive)),
         send.event, receive.event});
  }
  return found;
}

std::string list_text(const std::set<std::string>& names) {
  return names.empty() ? "none" : join_words({names.begin(), names.end()}, 8);
}

Finding asymmetry(const Evidence& evidence, const std::map<std::string, HostAdapters>& hosts,
                  const std::vector<Broken>& broken, const std::vector<Crossing>& crossed) {
  std::size_t most = 0;
  for (const auto& [name, host] : hosts) most = std::max(most, host.names.size());
  Finding finding;
  finding.code = "nic-asymmetry";
  std::vector<std::string> parts;
  bool explained = false;
  for (const auto& [name, host] : hosts) {
    const bool poor = host.names.size() < most;
    parts.push_back(fmt::format("{} uses {} ({})", name, host.names.size(), list_text(host.names)));
    cite(finding, evidence, *host.event);
    if (!poor) continue;
    bool named = false;
    for (const Broken& device : broken) {
      if (device.host != name) continue;
      explained = named = true;
      finding.subjects.push_back(fmt::format("{} {}", name, device.device.empty() ? "adapter" : device.device));
      cite(finding, evidence, *device.event);
      finding.explanation += fmt::format("{} cannot open {}: that is the root.\n", name,
                                         device.device.empty() ? "an adapter" : device.device);
    }
    if (!named && finding.subjects.size() < 16) finding.subjects.push_back("host " + name);
  }
  for (std::size_t i = 0; i < crossed.size() && i < 3; ++i) {
    finding.explanation += fmt::format("For example {}: the two sides do not mean the same path.\n", crossed[i].text);
    cite(finding, evidence, *crossed[i].send);
    cite(finding, evidence, *crossed[i].receive);
  }
  const bool proven = explained || !crossed.empty();
  finding.severity = proven ? Severity::error : Severity::warning;
  finding.confidence = explained && !crossed.empty() ? Confidence::high : Confidence::medium;
  finding.summary = "The hosts do not use the same adapters: " + join_words(parts, 4);
  finding.explanation +=
      "Start-up may succeed all the same, above all with NCCL_IGNORE_NET_MISMATCH set; then channels on the "
      "adapter that one side lacks wait for ever.\n";
  finding.advice =
      "Repair that adapter (permission or device file in the container), or restrict all hosts to what all have "
      "(NCCL_IB_HCA); do not set NCCL_IGNORE_NET_MISMATCH.";
  return finding;
}

// Some hosts go by sockets while others go by InfiniBand.
std::optional<Finding> transports_differ(const Evidence& evidence) {
  std::map<std::string, std::map<std::string, const LogEvent*>> hosts;  // host -> transport -> line
  for (const auto& [event, fact] : seen<NetChannel>(evidence)) {
    if (fact->transport.rfind("NET/", 0) != 0) continue;
    hosts[host_of(evidence, *event)].emplace(fact->transport, event);
  }
  std::map<std::string, std::vector<std::string>> users;
  for (const auto& [host, transports] : hosts) {
    if (transports.size() == 1) users[transports.begin()->first].push_back(host);
  }
  if (users.size() < 2) return std::nullopt;
  Finding finding;
  finding.code = "nic-asymmetry";
  finding.confidence = Confidence::medium;
  std::vector<std::string> parts;
  std::size_t total = 0;
  for (const auto& [transport, names] : users) total += names.size();
  for (const auto& [transport, names] : users) {
    parts.push_back(fmt::format("{} on {}", transport, join_words(names, 4)));
    for (const std::string& name : names) {
      if (names.size() * 2 <= total && finding.subjects.size() < 16) finding.subjects.push_back("host " + name);
      cite(finding, evidence, *hosts[name].begin()->second);
    }
  }
  finding.summary = "The hosts do not use the same transport: " + join_words(parts, 3);
  finding.explanation =
      "Both ends of a channel must use one transport; what one host sends the other does not receive.\n";
  finding.advice = "Find why the adapter is not used there (driver, device file, NCCL_IB_DISABLE, NCCL_NET).";
  return finding;
}

std::optional<Finding> one_host(const Evidence& evidence, const std::vector<Broken>& broken,
                                const std::map<std::string, HostAdapters>& hosts) {
  // "No device found" alone is what every host without such adapters says.
  std::vector<const Broken*> named;
  for (const Broken& device : broken) {
    if (!device.device.empty()) named.push_back(&device);
  }
  if (named.empty() || hosts.size() > 1) return std::nullopt;
  Finding finding;
  finding.code = "nic-asymmetry";
  finding.severity = Severity::warning;
  finding.confidence = Confidence::low;
  std::vector<std::string> parts;
  for (const Broken* device : named) {
    parts.push_back(device->device + " of " + device->host);
    finding.subjects.push_back(fmt::format("{} {}", device->host, device->device));
    cite(finding, evidence, *device->event);
  }
  finding.summary = "An adapter that is there cannot be opened: " + join_words(parts, 4);
  finding.explanation =
      "If the other hosts open theirs, channels on it have no partner; their adapter lines are not here.\n";
  finding.advice = "Compare the \"NET/IB : Using\" line of all hosts.";
  return finding;
}

bool is_loopback(std::string_view name) { return name == "lo" || name.starts_with("lo:"); }

// Hosts of one job that go by an interface which ends in themselves.
std::optional<Finding> loopback(const Evidence& evidence) {
  std::map<std::string, const LogEvent*> by_lo;
  std::set<std::string> hosts;
  for (const LogEvent& event : evidence.events) {
    if (const auto* init = std::get_if<CommInit>(&event.fact); init != nullptr && !event.host.empty())
      hosts.insert(event.host);
    const auto* adapters = std::get_if<NetAdapters>(&event.fact);
    if (adapters == nullptr || event.host.empty()) continue;
    hosts.insert(event.host);
    const auto& all = adapters->adapters;
    const bool only_lo =
        !all.empty() && std::all_of(all.begin(), all.end(), [](const auto& a) { return is_loopback(a.name); });
    if (only_lo || is_loopback(adapters->out_of_band)) by_lo.emplace(event.host, &event);
  }
  if (by_lo.empty() || hosts.size() < 2) return std::nullopt;
  Finding finding;
  finding.code = "iface-loopback";
  finding.confidence = Confidence::high;
  std::vector<std::string> names;
  for (const auto& [host, event] : by_lo) {
    names.push_back(host);
    if (finding.subjects.size() < 16) finding.subjects.push_back("host " + host);
    cite(finding, evidence, *event);
  }
  finding.summary =
      fmt::format("NCCL goes by the loopback interface on {}: that reaches no other host", join_words(names, 4));
  finding.explanation = fmt::format("The job runs on {} hosts, so their processes can never meet.\n", hosts.size());
  finding.advice = "Unset NCCL_SOCKET_IFNAME or name the interface that joins the hosts; see also GLOO_SOCKET_IFNAME.";
  return finding;
}

}  // namespace

std::vector<Finding> judge_adapters(const Evidence& evidence) {
  const auto hosts = by_host(evidence);
  const std::vector<Broken> broken = unopened(evidence);
  std::set<std::size_t> counts;
  for (const auto& [name, host] : hosts) counts.insert(host.names.size());
  std::vector<Finding> findings;
  if (auto finding = loopback(evidence)) findings.push_back(std::move(*finding));
  if (counts.size() > 1) {
    findings.push_back(asymmetry(evidence, hosts, broken, crossings(evidence)));
  } else if (auto finding = transports_differ(evidence)) {
    findings.push_back(std::move(*finding));
  } else if (auto alone = one_host(evidence, broken, hosts)) {
    findings.push_back(std::move(*alone));
  }
  return findings;
}

}  // namespace ddx::analyzers
