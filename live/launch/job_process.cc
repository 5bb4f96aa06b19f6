#include "live/launch/job_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace ddx::live {
namespace {

// Of a group that has not the terminal: this would stop it.
void give_terminal(pid_t group) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTTOU);
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  ::tcsetpgrp(STDIN_FILENO, group);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

void restore_signals() {
  for (const int number :
       {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD, SIGUSR1, SIGUSR2, SIGTTOU, SIGTTIN, SIGTSTP, SIGCONT}) {
    struct sigaction action {};
    // What was ignored before wrap (nohup) stays so.
    if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) ::signal(number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace

JobProcess start_job(const std::vector<std::string>& command,
                     const std::vector<std::pair<std::string, std::string>>& environment, int out, int err) {
  JobProcess job;
  job.has_terminal = ::isatty(STDIN_FILENO) == 1 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  int failed[2];
  if (::pipe2(failed, O_CLOEXEC) != 0) {
    job.error = errno;
    return job;
  }
  job.pid = ::fork();
  if (job.pid == 0) {
    ::setpgid(0, 0);
    if (job.has_terminal) give_terminal(::getpid());
    restore_signals();
    if (out >= 0) ::dup2(out, STDOUT_FILENO);
    if (err >= 0) ::dup2(err, STDERR_FILENO);
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::execvp(words[0], words.data());
    const int error = errno;
    static_cast<void>(::write(failed[1], &error, sizeof(error)) + 1);
    ::_exit(127);
  }
  const int fork_error = errno;
  ::close(failed[1]);
  if (job.pid < 0) {
    job.error = fork_error;
  } else {
    ::setpgid(job.pid, job.pid);
    int error = 0;
    if (::read(failed[0], &error, sizeof(error)) == static_cast<ssize_t>(sizeof(error))) {
      job.error = error;
      ::waitpid(job.pid, nullptr, 0);
      take_terminal(job);
    }
  }
  ::close(failed[0]);
  return job;
}

void stop_with_job(const JobProcess& job) {
  take_terminal(job);
  ::kill(::getpid(), SIGSTOP);
  // Continued, perhaps in the background.
  if (job.has_terminal && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp()) give_terminal(job.pid);
  ::kill(-job.pid, SIGCONT);
}

void take_terminal(const JobProcess& job) {
  if (job.has_terminal && ::tcgetpgrp(STDIN_FILENO) == job.pid) give_terminal(::getpgrp());
}

int exit_status(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace ddx::live
