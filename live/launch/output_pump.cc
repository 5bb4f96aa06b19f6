#include "live/launch/output_pump.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <system_error>
#include <utility>

#include "live/launch/proc_files.h"
#include "live/launch/pump_display.h"
#include "traces/capture/output_offer.h"

namespace ddx::live {
namespace {

namespace asio = boost::asio;
using asio::posix::stream_descriptor;

constexpr int kPipeBytes = 1 << 20;
constexpr std::size_t kMostSources = 16384;
constexpr auto kRestAfter = std::chrono::milliseconds(200);  // a line without an end, such as a question, is shown then

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const FileId&, const FileId&) = default;
};

FileId id_of(int descriptor) {
  struct stat about {};
  return ::fstat(descriptor, &about) == 0 ? FileId{about.st_dev, about.st_ino} : FileId{};
}

struct PipeEnds {
  int read = -1;
  int write = -1;
};

PipeEnds make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
  ::fcntl(ends[0], F_SETPIPE_SZ, kPipeBytes);  // what is not allowed is not needed
  return {ends[0], ends[1]};
}

// One datagram, with descriptors.
bool send_with(int socket, void* bytes, std::size_t size, std::span<const int> descriptors, int flags) {
  iovec part{bytes, size};
  alignas(cmsghdr) char room[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = room;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(head), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | flags);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(size);
}

// One pipe that processes of the job write to.
struct Source {
  Source(asio::io_context& io, int descriptor, Speaker who)
      : speaker(who), file(id_of(descriptor)), pipe(io, descriptor) {
    pipe.non_blocking(true);  // a read is never to wait
  }
  Speaker speaker;
  FileId file;
  stream_descriptor pipe;
  LineSplitter lines;
  std::size_t shown = 0;  // of lines.rest()
  bool rest_is_new = false;
};

class OutputPump {
 public:
  OutputPump(const PumpOptions& options, int control, int listener, int out, int err)
      : options_(options),
        display_(options.status_line),
        logs_(options.folder),
        control_(io_, control),
        listener_(io_, listener),
        rest_timer_(io_) {
    add(out, -1, false);
    add(err, -1, true);
    await_control();
    await_offer();
  }

  void run() { io_.run(); }

 private:
  void add(int descriptor, std::int32_t rank, bool is_error) {
    const std::uint64_t id = ++last_id_;
    const auto source = std::make_shared<Source>(io_, descriptor, Speaker{id, rank, is_error});
    sources_[id] = source;
    read(source);
  }

  void read(const std::shared_ptr<Source>& source) {
    source->pipe.async_wait(stream_descriptor::wait_read, [this, source](const boost::system::error_code& error) {
      if (error) return;
      const bool open = take(*source);
      flush();
      if (open) {
        read(source);
      } else {
        close(*source);
      }
    });
  }

  // What is there now, up to a bound: others want their turn. False: all writers are gone.
  bool take(Source& source, int turns = 4) {
    for (int i = 0; i < turns; ++i) {
      boost::system::error_code error;
      const std::size_t got = source.pipe.read_some(asio::buffer(buffer_), error);
      if (error == asio::error::would_block) return true;
      if (error) return false;
      source.lines.feed({buffer_.data(), got}, [&](const Line& line) { give(source, line); });
      source.rest_is_new = true;
    }
    return true;
  }

  void close(Source& source) {
    source.lines.finish([&](const Line& line) { give(source, line); });
    flush();
    boost::system::error_code ignored;
    source.pipe.close(ignored);
    sources_.erase(source.speaker.id);
    stop_where_done();
  }

  bool is_shown(const Speaker& speaker) const {
    return !options_.quiet && (!options_.only_rank || *options_.only_rank == speaker.rank);
  }

  void give(Source& source, const Line& line) {
    logs_.keep(source.speaker, line);
    if (is_shown(source.speaker)) display_.show(source.speaker, line, source.shown);
    source.shown = 0;
  }

  void flush() {
    logs_.flush();
    display_.flush();
    if (std::string trouble = logs_.take_trouble(); !trouble.empty() && control_.is_open()) {
      send_message(control_.native_handle(), PumpMessage::Kind::trouble, 0, 0, trouble);
    }
    if (!resting_) await_rest();
  }

  void await_rest() {
    bool any = false;
    for (const auto& [id, source] : sources_) any = any || source->lines.rest().size() > source->shown;
    if (!any) return;
    resting_ = true;
    rest_timer_.expires_after(kRestAfter);
    rest_timer_.async_wait([this](const boost::system::error_code& error) {
      resting_ = false;
      if (error) return;
      for (const auto& [id, source] : sources_) show_rest(*source);
      display_.flush();
      await_rest();
    });
  }

  void show_rest(Source& source) {
    if (std::exchange(source.rest_is_new, false)) return;  // it grew just now: the end may be near
    std::string_view rest = source.lines.rest();
    if (rest.ends_with('\r')) rest.remove_suffix(1);
    if (rest.size() <= source.shown) return;
    if (is_shown(source.speaker)) display_.show_rest(source.speaker, rest.substr(source.shown));
    source.shown = rest.size();
  }

  void await_control() {
    control_.async_wait(stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
      if (error) return;
      PumpMessage message;
      const ssize_t got = ::recv(control_.native_handle(), &message, sizeof(message), MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {  // wrap is gone: go on without
        boost::system::error_code ignored;
        control_.close(ignored);
        display_.set_status("");
        stop_where_done();
        return;
      }
      if (got > 0) obey(message);
      await_control();
    });
  }

  void obey(const PumpMessage& message) {
    const auto size = static_cast<std::size_t>(std::clamp<std::int32_t>(message.size, 0, sizeof(message.text)));
    const std::string text(message.text, size);
    if (message.kind == PumpMessage::Kind::status) display_.set_status(text);
    if (message.kind == PumpMessage::Kind::tell) display_.tell(text);
    if (message.kind == PumpMessage::Kind::finish) finish();
  }

  void finish() {
    display_.set_status("");
    const auto all = sources_;
    for (const auto& [id, source] : all) {
      // As much as can have been in the pipe: who goes on writing is not waited for.
      if (!take(*source, 2 * kPipeBytes / static_cast<int>(buffer_.size()))) close(*source);
    }
    flush();
    send_message(control_.native_handle(), PumpMessage::Kind::done, 0, 0, "");
  }

  // With the job's last writer gone there is nothing to do; wrap may still have something to say.
  void stop_where_done() {
    if (sources_.empty() && !control_.is_open()) io_.stop();
  }

  void await_offer() {
    listener_.async_wait(stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
      if (error) return;
      const int link = ::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (link >= 0) {
        const auto peer = std::make_shared<stream_descriptor>(io_, link);
        peer->async_wait(stream_descriptor::wait_read, [this, peer](const boost::system::error_code& failed) {
          if (!failed) answer(peer->native_handle());
        });
      }
      await_offer();
    });
  }

  void answer(int link) {
    ucred peer{};
    socklen_t size = sizeof(peer);
    capture::OutputOffer offer{};
    if (::getsockopt(link, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return;
    if (peer.uid != ::geteuid() && peer.uid != 0) return;
    if (::recv(link, &offer, sizeof(offer), MSG_DONTWAIT) != static_cast<ssize_t>(sizeof(offer))) return;
    if (offer.magic != capture::kOfferMagic || offer.rank < 0) return;
    if (offer.kind == capture::OfferKind::exiting) {
      if (control_.is_open()) {
        send_message(control_.native_handle(), PumpMessage::Kind::exiting, peer.pid, offer.status, "");
      }
      return;
    }
    announce(peer.pid, offer.rank);
    replace(link, offer);
  }

  // While it waits for its answer it is sure to be there, and to be that process: the handle keeps it known.
  void announce(pid_t pid, std::int32_t rank) {
    if (!control_.is_open()) return;
    const int handle = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U));
    const auto stat = read_stat(pid);
    const std::string about =
        fmt::format("{} {} . {}", stat ? stat->start_ticks : 0, fmt::join(ancestors_of(pid), " "), command_of(pid));
    send_message(control_.native_handle(), PumpMessage::Kind::rank, pid, rank, about, handle);
    if (handle >= 0) ::close(handle);
  }

  // Whether the stream is one of ours that is not the rank's own: the launcher's, or that of another rank that started
  // it.
  bool is_to_be_replaced(const capture::OutputOffer& offer, const capture::OfferedStream& stream) const {
    if (stream.inode == 0) return false;
    const FileId file{stream.device, stream.inode};
    for (const auto& [id, source] : sources_) {
      if (source->file == file) return source->speaker.rank != offer.rank;
    }
    return offer.relayed != 0;
  }

  void replace(int link, const capture::OutputOffer& offer) {
    capture::OutputAnswer answer{};
    const capture::OfferedStream& out = offer.streams[0];
    const capture::OfferedStream& err = offer.streams[1];
    if (is_to_be_replaced(offer, out)) answer.replace |= 1;
    if (is_to_be_replaced(offer, err)) answer.replace |= 2;
    answer.joined = answer.replace == 3 && out.device == err.device && out.inode == err.inode ? 1 : 0;
    std::array<PipeEnds, 2> pipes;
    std::size_t count = 0;
    try {
      if (sources_.size() >= kMostSources) answer = {};
      if ((answer.replace & 1) != 0) pipes[count++] = make_pipe();
      if ((answer.replace & 2) != 0 && answer.joined == 0) pipes[count++] = make_pipe();
    } catch (const std::system_error&) {  // out of descriptors: the lines are shown as the launcher's
      for (std::size_t i = 0; i < count; ++i) ::close(pipes[i].read), ::close(pipes[i].write);
      count = 0;
      answer = {};
    }
    const int ends[2] = {pipes[0].write, pipes[1].write};
    const bool sent = send_with(link, &answer, sizeof(answer), {ends, count}, MSG_DONTWAIT);
    for (std::size_t i = 0; i < count; ++i) {
      ::close(pipes[i].write);
      if (sent) {
        add(pipes[i].read, offer.rank, i == 1 || answer.replace == 2);
      } else {
        ::close(pipes[i].read);
      }
    }
  }

  PumpOptions options_;
  asio::io_context io_{1};
  Display display_;
  Logs logs_;
  stream_descriptor control_;
  stream_descriptor listener_;
  asio::steady_timer rest_timer_;
  bool resting_ = false;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Source>> sources_;
  std::array<char, 64 << 10> buffer_{};
};

int listen_for_ranks(std::string& address) {
  std::random_device random;
  address = fmt::format("ddx-wrap-{}-{:08x}{:08x}", ::getpid(), random(), random());
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path + 1, address.data(), address.size());
  const int listener = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) fail("socket");
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + address.size());
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&name), size) != 0 || ::listen(listener, 1024) != 0) {
    ::close(listener);
    fail("bind");
  }
  return listener;
}

// In the pump's own process.
[[noreturn]] void pump(const PumpOptions& options, int control, int listener, int out, int err) {
  ::setsid();  // what ends the job, or wrap, by its process group or its terminal does not end this
  ::prctl(PR_SET_NAME, "ddx-output");
  take_all_descriptors();
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);  // it is the job's
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTTOU, SIGTSTP, SIGUSR1, SIGUSR2}) {
    ::signal(number, SIG_IGN);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  int status = 0;
  try {
    OutputPump(options, control, listener, out, err).run();
  } catch (const std::exception&) {
    status = 1;
  }
  ::_exit(status);
}

}  // namespace

Pump start_pump(const PumpOptions& options) {
  Pump made;
  const int listener = listen_for_ranks(made.address);
  const PipeEnds out = make_pipe();
  const PipeEnds err = make_pipe();
  int control[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0) fail("socketpair");
  made.pid = ::fork();
  if (made.pid < 0) fail("fork");
  if (made.pid == 0) {
    ::close(out.write);
    ::close(err.write);
    ::close(control[0]);
    pump(options, control[1], listener, out.read, err.read);
  }
  for (const int descriptor : {listener, out.read, err.read, control[1]}) ::close(descriptor);
  made.control = control[0];
  made.out = out.write;
  made.err = err.write;
  return made;
}

bool send_message(int control, PumpMessage::Kind kind, std::int32_t pid, std::int32_t number, const std::string& text,
                  int descriptor) {
  PumpMessage message;
  message.kind = kind;
  message.pid = pid;
  message.number = number;
  message.size = static_cast<std::int32_t>(std::min(text.size(), sizeof(message.text)));
  std::memcpy(message.text, text.data(), static_cast<std::size_t>(message.size));
  const std::size_t size = offsetof(PumpMessage, text) + static_cast<std::size_t>(message.size);
  // What may be missed is not waited for: neither process may stand still because the other does.
  const bool waits =
      kind == PumpMessage::Kind::tell || kind == PumpMessage::Kind::finish || kind == PumpMessage::Kind::done;
  return send_with(control, &message, size, {&descriptor, descriptor < 0 ? 0U : 1U}, waits ? 0 : MSG_DONTWAIT);
}

bool receive_message(int control, PumpMessage& message, int& descriptor) {
  message.size = 0;
  descriptor = -1;
  iovec part{&message, sizeof(message)};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))];
  msghdr whole{};
  whole.msg_iov = &part;
  whole.msg_iovlen = 1;
  whole.msg_control = room;
  whole.msg_controllen = sizeof(room);
  const ssize_t got = ::recvmsg(control, &whole, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < static_cast<ssize_t>(offsetof(PumpMessage, text))) return false;
  const cmsghdr* head = CMSG_FIRSTHDR(&whole);
  if (head != nullptr && head->cmsg_type == SCM_RIGHTS) std::memcpy(&descriptor, CMSG_DATA(head), sizeof(descriptor));
  return true;
}

}  // namespace ddx::live
