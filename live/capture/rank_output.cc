#include "live/capture/rank_output.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "traces/capture/output_offer.h"

namespace ddx::capture {
namespace {

constexpr int kPatienceSeconds = 2;  // with a wrap that is there and does not answer

// Of which rank this process is for wrap, and which process said so: a forked child may be another rank.
std::atomic<std::int64_t> g_offered{-1};

// An open connection to wrap, or -1.
int connect_to_wrap() {
  const char* name = std::getenv(kOutputVariable);
  if (name == nullptr || *name == '\0') return -1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(name);
  if (length + 1 > sizeof(address.sun_path)) return -1;
  std::memcpy(address.sun_path + 1, name, length);  // a zero first: no file
  const int link = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (link < 0) return -1;
  const timeval patience{kPatienceSeconds, 0};
  setsockopt(link, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  setsockopt(link, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (connect(link, reinterpret_cast<const sockaddr*>(&address), size) == 0) return link;
  close(link);
  return -1;
}

// Launchers that read their ranks' output and write it to their own: who reads there is no reader of the user's.
bool parent_relays() {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/comm", static_cast<int>(getppid()));
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char name[32] = {};
  const ssize_t size = read(file, name, sizeof(name) - 1);
  close(file);
  if (size <= 0) return false;
  if (name[size - 1] == '\n') name[size - 1] = '\0';
  for (const char* launcher : {"mpirun", "mpiexec", "orterun", "orted", "prterun", "prte", "prted", "hydra_pmi_proxy",
                               "pmi_proxy", "slurmstepd"}) {
    if (std::strcmp(name, launcher) == 0) return true;
  }
  return false;
}

OfferedStream stream_of(int descriptor, bool relayed) {
  struct stat about {};
  if (fstat(descriptor, &about) != 0) return {};
  const bool pipe = S_ISFIFO(about.st_mode);
  // Open MPI gives its ranks a terminal, Hydra a socket.
  if (!pipe && !(relayed && (S_ISSOCK(about.st_mode) || isatty(descriptor) == 1))) return {};
  return {about.st_dev, about.st_ino};
}

bool send_offer(int link, const OutputOffer& offer) {
  return send(link, &offer, sizeof(offer), MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(offer));
}

// The answer's descriptors, of which there are `count` (at most 2).
bool take_answer(int link, OutputAnswer& answer, int (&descriptors)[2], int& count) {
  iovec part{&answer, sizeof(answer)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(descriptors))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  count = 0;
  const ssize_t got = recvmsg(link, &message, MSG_CMSG_CLOEXEC);
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); got >= 0 && head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    count = static_cast<int>((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(descriptors, CMSG_DATA(head), static_cast<std::size_t>(count) * sizeof(int));
  }
  return got == static_cast<ssize_t>(sizeof(answer));
}

void exchange(int link) {
  OutputAnswer answer{};
  int descriptors[2] = {-1, -1};
  int count = 0;
  if (take_answer(link, answer, descriptors, count)) {
    int next = 0;
    for (int stream = 0; stream < 2; ++stream) {
      if ((answer.replace & (1U << stream)) == 0 || next >= count) continue;
      dup2(descriptors[next], stream + 1);
      if (answer.joined == 0) ++next;
    }
  }
  for (int i = 0; i < count; ++i) close(descriptors[i]);
}

void tell_exit(int status, void*) {
  const std::int64_t offered = g_offered.load();
  if (offered < 0 || offered >> 32 != getpid()) return;
  const int link = connect_to_wrap();
  if (link < 0) return;
  OutputOffer offer{};
  offer.magic = kOfferMagic;
  offer.kind = OfferKind::exiting;
  offer.rank = static_cast<std::int32_t>(offered & 0x7fffffff);
  offer.status = status;
  send_offer(link, offer);
  close(link);
}

void let_watcher_in() {
#ifdef PR_SET_PTRACER
  const char* watcher = std::getenv(kWatcherVariable);
  if (watcher != nullptr) prctl(PR_SET_PTRACER, std::strtoul(watcher, nullptr, 10), 0, 0, 0);
#endif
}

}  // namespace

void offer_output(std::int32_t rank) {
  if (rank < 0 || std::getenv(kOutputVariable) == nullptr) return;
  const std::int64_t said = std::int64_t{getpid()} << 32 | rank;
  if (g_offered.exchange(said) == said) return;
  const int error = errno;
  if (const int link = connect_to_wrap(); link >= 0) {
    OutputOffer offer{};
    offer.magic = kOfferMagic;
    offer.kind = OfferKind::output;
    offer.rank = rank;
    const bool relayed = parent_relays();
    offer.relayed = relayed ? 1 : 0;
    offer.streams[0] = stream_of(1, relayed);
    offer.streams[1] = stream_of(2, relayed);
    if (send_offer(link, offer)) exchange(link);
    close(link);
    let_watcher_in();
    static std::atomic<bool> told{false};
    if (!told.exchange(true)) on_exit(tell_exit, nullptr);
  }
  errno = error;
}

}  // namespace ddx::capture
