#include "traces/formats/net_log.h"

#include <optional>

#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

constexpr std::size_t kMaxName = 255;

std::string name(std::string_view text) { return printable(trimmed(text), kMaxName); }

// "[node-a]:29500" and "(192.0.2.1, 29500)": the address.
std::string endpoint(std::string_view text) {
  if (text.empty() || (text.front() != '[' && text.front() != '(')) return name(until(text, " ,:"));
  text.remove_prefix(1);
  // "[::ffff:192.0.2.1]:29500" wraps an IPv4 address.
  if (text.starts_with("::ffff:")) text.remove_prefix(7);
  return name(until(text, "],)"));
}

// "[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.1.1]:33077", "Read error
// [192.0.2.9]:3977: Connection reset by peer", "Timed out waiting 1800000ms for recv operation to complete".
std::optional<NetSocketError> parse_gloo(std::string_view body) {
  NetSocketError error;
  if (const auto waited = rest_after(body, "Timed out waiting ")) {
    const auto operation = rest_after(*waited, "ms for ");
    if (!operation || !contains(*operation, "operation to complete")) return std::nullopt;
    error.call = name(word_at(*operation));
    error.error = name(until(body.substr(body.find("Timed out waiting ")), ".\""));
    return error;
  }
  if (contains(body, "Application timeout caused pair closure")) {
    error.error = "Application timeout caused pair closure";
    return error;
  }
  if (!contains(body, "gloo")) return std::nullopt;
  if (const auto peer = rest_after(body, "Connection closed by peer ")) {
    error.peer = endpoint(*peer);
    error.error = "Connection closed by peer";
    return error;
  }
  for (std::string_view way : {"Read error ", "Write error ", "connect "}) {
    const auto peer = rest_after(body, way);
    const auto what = socket_error_in(body);
    if (!peer || !what || !peer->starts_with("[")) continue;
    error.peer = endpoint(*peer);
    error.call = way == "Read error " ? "recv" : way == "Write error " ? "send" : "connect";
    error.error = *what;
    return error;
  }
  if (contains(body, "connectFullMesh failed")) {
    error.call = "connect";
    error.error = "connectFullMesh failed";
    return error;
  }
  return std::nullopt;
}

// "sendBytes failed on SocketImpl(fd=4, addr=[a]:53246, remote=[b]:29500): Broken pipe"; "Failed to recv, got 0 bytes".
std::optional<NetSocketError> parse_store_socket(std::string_view body) {
  NetSocketError error;
  if (!contains(body, "SocketImpl(")) {
    const auto what = socket_error_in(body);
    if (!what || (!contains(body, "store->get") && !contains(body, "TCPStore"))) return std::nullopt;
    error.error = *what;
    return error;
  }
  if (const auto remote = rest_after(body, "remote=")) error.peer = endpoint(*remote);
  for (std::string_view way : {"recvValue", "recvBytes", "recvVector", "sendBytes", "sendValue"}) {
    if (contains(body, way)) error.call = way.substr(0, 4);
  }
  if (const auto what = socket_error_in(body)) {
    error.error = *what;
  } else if (contains(body, "got 0 bytes")) {
    error.error = "Connection closed by peer";
  } else if (error.call.empty()) {
    return std::nullopt;
  } else {
    error.error = "failed";
  }
  return error;
}

// "The client socket has timed out after 60000ms while trying to connect to (192.0.2.1, 29500).", "The client socket
// has failed to connect to [node-a]:29500 (errno: 111 - Connection refused).", "The server socket has failed to bind to
// [::]:29500 (errno: 98 - Address already in use)."
std::optional<NetSocketError> parse_c10d_socket(std::string_view body) {
  NetSocketError error;
  if (const auto client = rest_after(body, "client socket has ")) {
    const auto target = rest_after(*client, "connect to ");
    if (!target) return std::nullopt;
    error.call = "connect";
    error.peer = endpoint(*target);
    if (client->starts_with("timed out")) error.error = "timed out";
  } else if (const auto server = rest_after(body, "server socket has failed to ")) {
    error.call = name(word_at(*server));
  } else {
    return std::nullopt;
  }
  if (error.error.empty()) {
    if (const auto number = rest_after(body, "(errno: ")) {
      const auto text = rest_after(*number, "- ");
      if (text) error.error = name(until(*text, ")"));
    }
  }
  if (error.error.empty()) error.error = error.call == "connect" ? "failed" : "in use";
  return error;
}

std::optional<NameResolutionError> parse_resolution(std::string_view body) {
  const bool resolver = contains(body, "ame or service not known") || contains(body, "failure in name resolution") ||
                        contains(body, "esolve host") || contains(body, "getaddrinfo fail") ||
                        contains(body, "host not found") || contains(body, "gai error");
  // A name without IPv6 address is the rule where IPv4 is used: PyTorch tries that next.
  if (!resolver || contains(body, "The IPv6 network addresses")) return std::nullopt;
  NameResolutionError error;
  if (const auto addresses = rest_after(body, "network addresses of ")) {
    error.name = endpoint(*addresses);
  } else if (const auto host = rest_after(body, "esolve hostname")) {
    error.name = name(until(trimmed(until(*host, ";")), " :'\""));
    if (error.name.empty()) {
      if (const auto quoted = rest_after(*host, "'")) error.name = name(until(*quoted, "'"));
    }
  } else if (const auto quoted = rest_after(body, "esolve host ")) {
    error.name = name(until(*quoted, " :;,"));
  }
  return error;
}

// "The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name:
// EADDRINUSE, message: address already in use"; older: "... has failed to bind to [::]:29500 (errno: 98 - Address
// already in use)"; Python: "OSError: [Errno 98] Address already in use".
std::optional<PortTaken> parse_port_taken(std::string_view body) {
  if (!contains(body, "ddress already in use") && !contains(body, "EADDRINUSE")) return std::nullopt;
  PortTaken taken;
  taken.port = number_after(body, "port: ");
  if (!taken.port) {
    if (const auto bound = rest_after(body, "]:")) taken.port = number_at(*bound);
  }
  if (taken.port && (*taken.port < 1 || *taken.port > 65'535)) taken.port.reset();
  return taken;
}

}  // namespace

bool read_network_line(const LogLine& line, LogEventWriter& events) {
  const std::string_view body = line.body;
  if (const auto taken = parse_port_taken(body)) {
    events.add(line, *taken);
    return true;
  }
  std::optional<NetSocketError> error = parse_gloo(body);
  if (!error) error = parse_store_socket(body);
  if (!error) error = parse_c10d_socket(body);
  if (error) {
    events.add(line, std::move(*error));
    return true;
  }
  if (auto unresolved = parse_resolution(body)) {
    events.add(line, std::move(*unresolved));
    return true;
  }
  return false;
}

}  // namespace ddx::formats
