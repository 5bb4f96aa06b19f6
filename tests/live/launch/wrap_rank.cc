// A rank for wrap_test.py: makes collective calls by the recorder's C interface, and waits for files, never for a time.
//
//   wrap_rank WORD...   in this order: "call" a call that ends; "enter" one that does not; "raise" an uncaught
//   exception
//                       is told; "say=TEXT" a line; "touch=FILE" makes a file; "await=FILE" waits for one; "kill=N" the
//                       process by signal N; "exit=N"; "stay" until it is ended
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "live/capture/ddx_trace.h"
#include "traces/capture/record.h"

namespace {

using namespace ddx::capture;

std::uint32_t text(std::string_view words) { return ddx_text(words.data(), words.size()); }

std::uint32_t world() {
  const char* size = std::getenv("WORLD_SIZE");
  std::int32_t ranks[64];
  const int count = size == nullptr ? 1 : std::atoi(size);
  for (int i = 0; i < count && i < 64; ++i) ranks[i] = i;
  DdxGroupInfo group{};
  group.size_of = sizeof(group);
  group.name = text("world");
  group.size = count;
  group.device = -1;
  group.position = std::atoi(std::getenv("RANK"));
  group.ranks = ranks;
  group.rank_count = static_cast<std::size_t>(count);
  return ddx_group(&group);
}

std::uint64_t begin(std::uint32_t group) {
  DdxCallInfo call{};
  call.size_of = sizeof(call);
  call.kind = static_cast<std::uint8_t>(CallKind::all_reduce);
  call.element = static_cast<std::uint8_t>(ElementType::f32);
  call.reduction = static_cast<std::uint8_t>(Reduction::sum);
  call.group = group;
  call.peer = -1;
  call.count = 4;
  return ddx_begin(&call);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint32_t group = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t equal = word.find('=');
    const std::string value = equal == std::string::npos ? "" : word.substr(equal + 1);
    if (word == "call" || word == "enter") {
      if (group == 0) group = world();
      const std::uint64_t call = begin(group);
      if (word == "call") {
        ddx_returned(call, 0);
        ddx_ended(call, 0);
      }
    } else if (word == "raise") {
      ddx_event(static_cast<std::uint8_t>(EventCode::exception), 0, 0, text("ValueError: no such batch"), 0, 0);
    } else if (word == "stay") {
      while (true) pause();
    } else if (word.starts_with("say=")) {
      std::printf("%s\n", value.c_str());
      std::fflush(stdout);
    } else if (word.starts_with("touch=")) {
      close(open(value.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    } else if (word.starts_with("await=")) {
      while (access(value.c_str(), F_OK) != 0) usleep(2000);
    } else if (word.starts_with("kill=")) {
      kill(getpid(), std::atoi(value.c_str()));
    } else if (word.starts_with("exit=")) {
      std::exit(std::atoi(value.c_str()));
    } else {
      std::fprintf(stderr, "no such word: %s\n", word.c_str());
      return 2;
    }
  }
  return 0;
}
