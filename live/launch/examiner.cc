#include "live/launch/examiner.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>

namespace ddx::live {
namespace {

constexpr Nanos kDumpLimit = 5 * kSecond;
constexpr Nanos kDebuggerLimit = 20 * kSecond;

void write_all(int file, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(file, text.data() + at, text.size() - at);
    if (n <= 0) return;
    at += static_cast<std::size_t>(n);
  }
}

// The first byte: whether it is an error; the second: whether nobody must read it; the third: whether nothing is wrong;
// then its gist, a line, and its
// text.
[[noreturn]] void examine(const std::string& folder, const std::string& whole, const std::vector<Subject>& subjects,
                          const std::function<Judgement(const std::string&)>& analyze, int answer) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_NAME, "ddx-analysis");
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(number, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  Judgement judgement;
  try {
    if (!subjects.empty()) {
      ask_for_dumps(folder, subjects, kDumpLimit);
      keep_stacks(folder, subjects, kDebuggerLimit);
    }
    judgement = analyze(whole);
  } catch (const std::exception& error) {
    judgement = {.is_error = false,
                 .is_clean = false,
                 .is_silent = false,
                 .text = fmt::format("ddx: the capture was not judged: {}\n", error.what()),
                 .gist = ""};
  }
  write_all(answer, std::string(judgement.is_error ? "1" : "0") + (judgement.is_silent ? "1" : "0") +
                        (judgement.is_clean ? "1" : "0") + judgement.gist + "\n" + judgement.text);
  ::_exit(0);
}

}  // namespace

Examination start_examination(const std::string& folder, const std::string& whole, const std::vector<Subject>& subjects,
                              const std::function<Judgement(const std::string&)>& analyze) {
  Examination made;
  made.answer = ::memfd_create("ddx-analysis", MFD_CLOEXEC);
  if (made.answer < 0) return made;
  made.pid = ::fork();
  if (made.pid == 0) examine(folder, whole, subjects, analyze, made.answer);
  return made;
}

Judgement take_judgement(Examination& examination) {
  Judgement judgement;
  std::string text;
  char buffer[16 << 10];
  off_t at = 0;
  while (examination.answer >= 0) {
    const ssize_t got = ::pread(examination.answer, buffer, sizeof(buffer), at);
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
    at += got;
  }
  const std::size_t line = text.find('\n');
  if (line != std::string::npos && line >= 3) {
    judgement = {.is_error = text[0] == '1',
                 .is_clean = text[2] == '1',
                 .is_silent = text[1] == '1',
                 .text = text.substr(line + 1),
                 .gist = text.substr(3, line - 3)};
  } else {
    judgement = {.is_error = false,
                 .is_clean = false,
                 .is_silent = false,
                 .text = "ddx: the capture was not judged: the analysis was ended\n",
                 .gist = ""};
  }
  if (examination.answer >= 0) ::close(examination.answer);
  examination = {};
  return judgement;
}

}  // namespace ddx::live
