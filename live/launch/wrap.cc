#include "live/launch/wrap.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "live/launch/examiner.h"
#include "live/launch/hang_watch.h"
#include "live/launch/job_process.h"
#include "live/launch/job_view.h"
#include "live/launch/output_pump.h"
#include "live/launch/proc_files.h"
#include "live/launch/process_report.h"
#include "live/launch/process_table.h"

namespace ddx::live {
namespace {

namespace asio = boost::asio;
using asio::posix::stream_descriptor;
using std::chrono::seconds;

constexpr auto kTick = seconds(1);
constexpr auto kUntilKilled = seconds(10);  // from SIGTERM to SIGKILL
constexpr auto kForOutput = seconds(10);    // for the last of the job's output to be shown
constexpr auto kUntilNextLook = std::chrono::milliseconds(50);
constexpr Nanos kForTheKilled = 5 * kSecond;  // to be gone
constexpr const char* kEnded = "/ended";      // made once a node's capture is whole
constexpr int kMostHangs = 5;                 // of which evidence is taken
constexpr std::size_t kMostTold = 8;

void write_error(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
    if (n <= 0 && errno != EINTR) return;
  }
}

bool is_ignored(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

class Supervisor {
 public:
  // `folder`: what is captured here; `whole`: what is to be analyzed.
  Supervisor(const WrapOptions& options, std::string folder, std::string whole, Pump pump, JobProcess job)
      : options_(options),
        folder_(std::move(folder)),
        whole_(std::move(whole)),
        pump_(std::move(pump)),
        job_(job),
        view_(folder_),
        signals_(io_),
        ticker_(io_),
        killer_(io_),
        last_words_(io_),
        ended_(io_, ::dup(table_.descriptor())),
        control_(io_, ::dup(pump_.control)) {
    take_all_descriptors();  // after the job was started: its limit is its own
    table_.ignore(pump_.pid);
    know_job();
    table_.scan();
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
      if (!is_ignored(number)) signals_.add(number);
    }
    signals_.add(SIGCHLD);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);  // those that came meanwhile come now
    ::signal(SIGPIPE, SIG_IGN);
    await_signal();
    await_tick();
    await_ended();
    await_pump();
    on_children();
  }

  int run() {
    io_.run();
    return status_;
  }

 private:
  // Also where it has ended by now.
  void know_job() {
    ProcessRecord record;
    record.pid = job_.pid;
    record.parent = ::getpid();
    if (const auto stat = read_stat(job_.pid)) record.start_ticks = stat->start_ticks;
    record.rank = rank_of(job_.pid);
    record.command = fmt::format("{}", fmt::join(options_.command, " "));
    table_.announce(std::move(record), {});
  }

  void tell(const std::string& text) {
    const std::string line = text.ends_with('\n') ? text : text + "\n";
    for (std::size_t at = 0; at < line.size(); at += sizeof(PumpMessage::text)) {
      const std::string piece = line.substr(at, sizeof(PumpMessage::text));
      if (!send_message(pump_.control, PumpMessage::Kind::tell, 0, 0, piece)) write_error(piece);
    }
  }

  void await_signal() {
    signals_.async_wait([this](const boost::system::error_code& error, int number) {
      if (error) return;
      if (number == SIGCHLD) {
        on_children();
      } else {
        on_signal(number);
      }
      await_signal();
    });
  }

  void on_signal(int number) {
    const bool ends = number == SIGINT || number == SIGTERM;
    if (job_ended_) {  // only the analysis is left
      if (ends) nodes_until_ = 0;
      if (ends && examination_.pid > 0) ::kill(-examination_.pid, SIGKILL);
      return;
    }
    if (ends && ++asked_to_end_ > 1) {
      table_.scan();
      table_.end_all(SIGKILL);
      ::kill(-job_.pid, SIGKILL);
      return;
    }
    ::kill(-job_.pid, number);
  }

  void on_children() {
    int status = 0;
    while (true) {
      const pid_t pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED);
      if (pid < 0 && errno == EINTR) continue;
      if (pid <= 0) return;
      if (WIFSTOPPED(status)) {
        const int by = WSTOPSIG(status);
        if (pid == job_.pid && job_.has_terminal && (by == SIGTSTP || by == SIGTTIN || by == SIGTTOU))
          stop_with_job(job_);
        continue;
      }
      if (pid == job_.pid) on_job_ended(status);
      if (pid == examination_.pid) on_examined();
      table_.reaped(pid, status);
    }
  }

  void await_ended() {
    ended_.async_wait(stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
      if (error) return;
      table_.collect();
      await_ended();
    });
  }

  void await_pump() {
    control_.async_wait(stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
      if (error) return;
      PumpMessage message;
      int handle = -1;
      if (!receive_message(control_.native_handle(), message,
                           handle)) {  // it has ended: nobody reads the job's output now
        if (errno == EAGAIN || errno == EINTR) return await_pump();
        if (!std::exchange(output_done_, true)) {
          write_error("ddx: the process that keeps the job's output is gone: nothing more is shown or kept\n");
        }
        return finish();
      }
      on_message(message, handle);
      await_pump();
    });
  }

  void on_message(const PumpMessage& message, int handle) {
    const std::string text(message.text,
                           std::min(static_cast<std::size_t>(std::max(message.size, 0)), sizeof(message.text)));
    switch (message.kind) {
      case PumpMessage::Kind::rank: {
        ProcessRecord record;
        record.pid = message.pid;
        record.rank = message.number;
        record.handle = handle;
        std::istringstream fields(text);
        std::vector<pid_t> ancestors;
        fields >> record.start_ticks;
        for (pid_t ancestor = 0; fields >> ancestor;) ancestors.push_back(ancestor);
        fields.clear();  // at the dot
        std::getline(fields.ignore(2), record.command);
        if (!ancestors.empty()) record.parent = ancestors.front();
        table_.announce(std::move(record), ancestors);
        break;
      }
      case PumpMessage::Kind::exiting: table_.told_exit(message.pid, message.number); break;
      case PumpMessage::Kind::trouble: tell("ddx: " + text); break;
      case PumpMessage::Kind::done:
        output_done_ = true;
        finish();
        break;
      default: break;
    }
  }

  void await_tick() {
    ticker_.expires_after(kTick);
    ticker_.async_wait([this](const boost::system::error_code& error) {
      if (error || job_ended_) return;
      tick();
      await_tick();
    });
  }

  void tick() {
    table_.scan();
    view_.refresh();
    const std::vector<ProcessView> processes = view_.processes(table_);
    if (options_.status_line) show_status(processes);
    if (ending_ || examination_.pid > 0) return;
    if (const auto lost = loss(processes, options_.grace)) return on_loss(*lost);
    const auto still = standstill(processes, options_.hang_after);
    if (still && !hanging_) return on_hang(*still);
    if (!still && std::exchange(hanging_, false)) tell("ddx: the job goes on: what stood has moved");
  }

  void show_status(const std::vector<ProcessView>& processes) {
    if (view_.files() == 0) return;  // no job of ranks, so far
    const std::uint64_t calls = view_.calls();
    const std::uint64_t step = calls - std::min(calls, std::exchange(last_calls_, calls));
    const Nanos age = realtime() - began_;
    std::string text = fmt::format("ddx {:02}:{:02}:{:02}  {}, {} calls/s", age / (3600 * kSecond),
                                   age / (60 * kSecond) % 60, age / kSecond % 60, view_.summary(processes), step);
    if (text.size() >= options_.width) text.resize(options_.width - 1);
    send_message(pump_.control, PumpMessage::Kind::status, 0, 0, text);
  }

  static std::string told_waiting(const std::vector<WaitingRank>& waiting) {
    std::string text;
    for (std::size_t i = 0; i < waiting.size() && i < kMostTold; ++i) {
      text += fmt::format("ddx:   {} has waited {} in {}\n", who(waiting[i].rank, waiting[i].pid),
                          format_duration(waiting[i].call.since / kSecond * kSecond), waiting[i].call.what);
    }
    if (waiting.size() > kMostTold) text += fmt::format("ddx:   and {} more wait\n", waiting.size() - kMostTold);
    return text;
  }

  void on_hang(const Standstill& still) {
    hanging_ = true;
    std::string text =
        fmt::format("ddx: the job stands still: nothing moved for {}\n", format_duration(options_.hang_after));
    text += told_waiting(still.waiting);
    for (std::size_t i = 0; i < still.others.size() && i < kMostTold; ++i) text += "ddx:   " + still.others[i] + "\n";
    if (still.others.size() > kMostTold) text += fmt::format("ddx:   and {} more\n", still.others.size() - kMostTold);
    tell(text);
    end_reason_ = options_.on_hang == OnHang::kill ? "it stands still (--on-hang kill)" : "";
    if (++hangs_ > kMostHangs) return end_where_asked();
    look_into(view_.subjects(table_));
  }

  void on_loss(const Loss& lost) {
    tell(fmt::format("ddx: {} {}{}; others wait for it\n", who(lost.rank, lost.pid), lost.how, memory_note()) +
         told_waiting(lost.waiting));
    end_reason_ = fmt::format("{} is gone, and others have waited {} for it (--grace)", who(lost.rank, lost.pid),
                              format_duration(options_.grace));
    look_into(view_.subjects(table_));
  }

  // Since the job began.
  MemoryKills new_memory_kills() const {
    const auto now = memory_kills();
    if (!now || !memory_kills_ || now->count <= memory_kills_->count) return {};
    return {now->count - memory_kills_->count, now->of_group};
  }

  std::string memory_note() const {
    const MemoryKills kills = new_memory_kills();
    if (kills.count == 0) return "";
    return fmt::format(" (the kernel has killed {} process{}{} for want of memory since the job began)", kills.count,
                       kills.count == 1 ? "" : "es", kills.of_group ? "" : " of this machine");
  }

  void report_processes() {
    const MemoryKills kills = new_memory_kills();
    write_process_report(folder_, table_, kills.of_group ? kills.count : 0);
  }

  // What the captures say is told at once; stacks and dumps of processes that stand take their time, and seldom say
  // more.
  void look_into(std::vector<Subject> subjects) {
    subjects_ = std::move(subjects);
    examine({});
  }

  void examine(const std::vector<Subject>& subjects) {
    report_processes();
    if (!options_.analyze) return on_examined();
    examination_ = start_examination(folder_, whole_, subjects, options_.analyze);
    if (examination_.pid < 0) return on_examined();
    table_.ignore(examination_.pid);
  }

  void on_examined() {
    judged_ = true;
    if (options_.analyze) {
      const Judgement judgement = take_judgement(examination_);
      is_error_ = judgement.is_error;
      is_clean_ = judgement.is_clean;
      const bool matters = hanging_ || !end_reason_.empty() || !judgement.is_silent;
      const bool is_new = judgement.gist.empty() || judgement.gist != std::exchange(told_, judgement.gist);
      if (!judgement.text.empty() && matters && is_new) tell(judgement.text);
    }
    examination_ = {};
    const std::vector<Subject> subjects = std::exchange(subjects_, {});
    if (!subjects.empty() && options_.analyze) return examine(subjects);
    if (job_ended_) return finish();
    end_where_asked();
  }

  void end_where_asked() {
    if (end_reason_.empty() || ending_ || job_ended_) return;
    ending_ = true;
    tell("ddx: the job is ended: " + end_reason_);
    table_.scan();
    ::kill(-job_.pid, SIGTERM);
    table_.end_all(SIGTERM);
    table_.wake_all();
    killer_.expires_after(kUntilKilled);
    killer_.async_wait([this](const boost::system::error_code& error) {
      if (error || job_ended_) return;
      table_.scan();
      table_.end_all(SIGKILL);
      ::kill(-job_.pid, SIGKILL);
    });
  }

  void on_job_ended(int status) {
    job_ended_ = true;
    take_terminal(job_);
    job_status_ = exit_status(status);
    ticker_.cancel();
    killer_.cancel();
    table_.reaped(job_.pid, status);
    if (ending_) table_.end_all(SIGKILL);  // what would not go with it
    gone_until_ = monotonic() + kForTheKilled;
    table_.scan();
    view_.refresh();
    // Its last output; then what is to be said of it.
    if (output_done_ || !send_message(pump_.control, PumpMessage::Kind::finish, 0, 0, "")) {
      output_done_ = true;
      return finish();
    }
    last_words_.expires_after(kForOutput);
    last_words_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      output_done_ = true;
      finish();
    });
  }

  // Called whenever one of its conditions may have become true.
  void finish() {
    if (!job_ended_ || !output_done_ || examination_.pid > 0) return;
    last_words_.cancel();
    if (!std::exchange(told_end_, true)) tell_end();
    if (!std::exchange(node_ended_, true)) end_node();
    if (!all_nodes_ended() || !all_gone()) return finish_later();
    // What wrap ended was judged before: that it was ended is no finding.
    if (!judged_ || (!ending_ && !std::exchange(judged_last_, true))) {
      judged_last_ = true;
      end_reason_.clear();
      hanging_ = false;
      told_.clear();  // the last word stands at the end as well
      return examine({});
    }
    report_processes();
    if (view_.files() > 0) {
      tell(fmt::format("ddx: what {} process{} did and wrote is in {}{}\n", view_.files(),
                       view_.files() == 1 ? "" : "es", folder_, is_clean_ ? "; ddx finds nothing wrong with it" : ""));
    }
    status_ = ending_ ? 1 : job_status_ != 0 ? job_status_ : is_error_ ? 1 : 0;
    io_.stop();
  }

  void end_node() {
    if (options_.nodes <= 1) return;
    report_processes();
    std::ofstream(folder_ + kEnded) << job_status_ << std::endl;
    nodes_until_ = monotonic() + options_.grace;
  }

  // What node 0 waits for, but not for ever: a node that fell has no more to tell.
  bool all_nodes_ended() const {
    if (options_.nodes <= 1 || options_.node_rank != 0 || monotonic() > nodes_until_) return true;
    std::error_code ignored;
    for (std::uint32_t node = 0; node < options_.nodes; ++node) {
      if (!std::filesystem::exists(fmt::format("{}/node_{}{}", whole_, node, kEnded), ignored)) return false;
    }
    return true;
  }

  // What wrap killed takes a moment to be gone; what the kernel holds on to may never be.
  bool all_gone() {
    if (!ending_ || monotonic() > gone_until_) return true;
    table_.scan();
    return table_.alive() == 0;
  }

  void finish_later() {
    last_words_.expires_after(kUntilNextLook);
    last_words_.async_wait([this](const boost::system::error_code& error) {
      if (!error) finish();
    });
  }

  // Which ranks ended badly, the first first; and what was not captured.
  void tell_end() {
    std::vector<const ProcessRecord*> bad;
    for (const ProcessRecord& record : table_.records()) {
      const std::string how = how_it_ended(record);
      if (record.rank >= 0 && !record.is_helper && record.ended != 0 && how != "exited with status 0" &&
          (record.status || record.told)) {
        bad.push_back(&record);
      }
    }
    std::sort(bad.begin(), bad.end(), [](const auto* a, const auto* b) { return a->ended < b->ended; });
    std::string text;
    if (job_status_ != 0 && !ending_) {
      for (std::size_t i = 0; i < bad.size() && i < kMostTold; ++i) {
        text += fmt::format("ddx: {} {}{}\n", who(bad[i]->rank, bad[i]->pid), how_it_ended(*bad[i]),
                            i == 0 ? memory_note() : "");
      }
    }
    for (const std::string& sentence : view_.stopped()) text += "ddx: " + sentence + "\n";
    const std::vector<std::int32_t> silent = view_.silent_ranks(table_);
    if (view_.files() > 0 && !silent.empty()) {
      text +=
          fmt::format("ddx: {} {} recorded no call\n", silent.size() == 1 ? "rank" : "ranks", fmt::join(silent, ","));
    }
    if (view_.files() == 0)
      text += "ddx: no process recorded a call: there is nothing to analyze (docs/wrap.md says what is seen)\n";
    if (!text.empty()) tell(text);
  }

  const WrapOptions& options_;
  std::string folder_;
  std::string whole_;
  Pump pump_;
  JobProcess job_;
  ProcessTable table_;
  JobView view_;
  asio::io_context io_{1};
  asio::signal_set signals_;
  asio::steady_timer ticker_, killer_, last_words_;
  stream_descriptor ended_;
  stream_descriptor control_;
  Examination examination_;
  std::vector<Subject> subjects_;  // whose stacks are still to be kept
  std::string told_;               // gist of the judgement that was told last
  std::optional<MemoryKills> memory_kills_ = memory_kills();
  Nanos began_ = realtime();
  std::uint64_t last_calls_ = 0;
  int asked_to_end_ = 0;
  int hangs_ = 0;
  bool hanging_ = false;
  Nanos gone_until_ = 0;
  bool is_clean_ = false;   // judged, and nothing found
  std::string end_reason_;  // why the job is to be ended once it is examined; empty: it is not
  bool ending_ = false;
  bool job_ended_ = false;
  bool output_done_ = false;
  bool told_end_ = false;
  bool node_ended_ = false;
  Nanos nodes_until_ = 0;
  bool judged_ = false;
  bool judged_last_ = false;
  bool is_error_ = false;
  int job_status_ = 0;
  int status_ = 0;
};

// In wrap's place: nothing of ddx stands between.
int run_bare(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  const int error = errno;
  write_error(fmt::format("ddx: {} cannot be run: {}\n", command.front(), std::generic_category().message(error)));
  return error == ENOENT ? 127 : 126;
}

void remove_where_empty(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::remove(folder, ignored);
}

}  // namespace

int wrap(const WrapOptions& options) {
  std::string folder = options.folder.empty() ? default_folder() : options.folder;
  if (options.nodes > 1) folder += fmt::format("/node_{}", options.node_rank);
  Pump pump;
  try {
    folder = make_folder(folder);
    pump = start_pump({.folder = folder,
                       .quiet = options.quiet,
                       .only_rank = options.only_rank,
                       .status_line = options.status_line && !options.quiet});
  } catch (const std::system_error& error) {
    write_error(fmt::format("ddx: nothing can be captured in '{}': {}. The job runs as without wrap.\n", folder,
                            error.code().message()));
    return run_bare(options.command);
  }
  const JobEnvironment environment = job_environment(folder, pump.address, find_parts(), options.capture);
  for (const std::string& sentence : environment.missing) write_error("ddx: " + sentence + "\n");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t held;
  sigemptyset(&held);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&held, number);
  ::sigprocmask(SIG_BLOCK, &held, nullptr);
  const JobProcess job = start_job(options.command, environment.set, pump.out, pump.err);
  ::close(pump.out);
  ::close(pump.err);
  if (job.error != 0) {
    ::close(pump.control);
    ::waitpid(pump.pid, nullptr, 0);
    remove_where_empty(folder);
    write_error(fmt::format("ddx: {} cannot be run: {}\n", options.command.front(),
                            std::generic_category().message(job.error)));
    return job.error == ENOENT ? 127 : 126;
  }
  const bool gathers = options.nodes > 1 && options.node_rank == 0;
  const std::string whole = gathers ? std::filesystem::path(folder).parent_path().string() : folder;
  return Supervisor(options, folder, whole, pump, job).run();
}

}  // namespace ddx::live
