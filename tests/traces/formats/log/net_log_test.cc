#include "traces/formats/net_log.h"

#include <gtest/gtest.h>

#include "tests/traces/formats/log/log_test_support.h"

namespace ddx::formats {
namespace {

struct SocketCase {
  std::string line;
  std::string call, peer, error;
};

TEST(NetLog, SocketsOfGlooAndOfTheStore) {
  const std::vector<SocketCase> cases{
      {"RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.1.1]:33077",
       "", "127.0.1.1", "Connection closed by peer"},
      {"  what():  [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:589] Read error [192.0.2.9]:3977: Connection "
       "reset by peer",
       "recv", "192.0.2.9", "Connection reset by peer"},
      {"[rank0]: RuntimeError: Timed out waiting 1800000ms for recv operation to complete", "recv", "",
       "Timed out waiting 1800000ms for recv operation to complete"},
      {"[rank0]: RuntimeError: Application timeout caused pair closure", "", "",
       "Application timeout caused pair closure"},
      {"RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error",
       "connect", "", "connectFullMesh failed"},
      {"[rank3]:[W1129 10:00:00.1 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=4, addr=[node-b]:53246, "
       "remote=[node-a]:29500): failed to recv, got 0 bytes",
       "recv", "node-a", "Connection closed by peer"},
      {"[W TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=4, addr=[::1]:53246, "
       "remote=[::ffff:192.0.2.1]:29500): Broken pipe",
       "send", "192.0.2.1", "Broken pipe"},
      {"[E socket.cpp:1023] [c10d] The client socket has timed out after 600000ms while trying to connect to "
       "(192.0.2.4, 37907).",
       "connect", "192.0.2.4", "timed out"},
      {"[W socket.cpp:697] [c10d] The client socket has failed to connect to [node-a]:29500 (errno: 111 - Connection "
       "refused).",
       "connect", "node-a", "Connection refused"},
      {"[rank1]: RuntimeError: [1] is setting up NCCL communicator, but store->get('0') got error: Connection reset by "
       "peer",
       "", "", "Connection reset by peer"},
  };
  for (const SocketCase& c : cases) {
    SCOPED_TRACE(c.line);
    const auto error = only<NetSocketError>(c.line);
    EXPECT_EQ(error.call, c.call);
    EXPECT_EQ(error.peer, c.peer);
    EXPECT_EQ(error.error, c.error);
  }
}

TEST(NetLog, APortThatIsTaken) {
  const auto port = [](const std::string& line) { return only<PortTaken>(line).port; };
  EXPECT_EQ(port("[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address "
                 "already in use)."),
            29'500);
  EXPECT_EQ(
      port("[rank0]: torch.distributed.DistNetworkError: The server socket has failed to listen on any local network "
           "address. port: 29501, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use"),
      29'501);
  EXPECT_EQ(facts_of<PortTaken>(read_log_text("OSError: [Errno 98] Address already in use\n")).size(), 1U);
}

struct NameCase {
  std::string line;
  std::string name;
};

TEST(NetLog, NamesThatDoNotResolve) {
  const std::vector<NameCase> cases{
      {"ValueError: host not found: Name or service not known", ""},
      {"[W socket.cpp:601] [c10d] The IPv4 network addresses of (node-a, 29500) cannot be retrieved (gai error: -2 - "
       "Name or service not known).",
       "node-a"},
      {"socket.gaierror: [Errno -3] Temporary failure in name resolution", ""},
      {"ssh: Could not resolve hostname node-c: Name or service not known", "node-c"},
  };
  for (const NameCase& c : cases) {
    SCOPED_TRACE(c.line);
    const auto facts = facts_of<NameResolutionError>(read_log_text(c.line));
    ASSERT_EQ(facts.size(), 1U);
    EXPECT_EQ(facts[0].name, c.name);
  }
  // PyTorch asks for IPv6 first; no answer is the rule where there is none.
  EXPECT_TRUE(read_log_text("[W socket.cpp:601] [c10d] The IPv6 network addresses of (node-a, 29500) cannot be "
                            "retrieved (gai error: -3 - Temporary failure in name resolution).")
                  .events.empty());
}

}  // namespace
}  // namespace ddx::formats
