// A process may be killed between any two instructions: its file reads, and all that it says is true.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <random>
#include <thread>

#include "live/capture/ddx_trace.h"
#include "tests/live/capture/in_child.h"
#include "tests/support/scratch_folder.h"

namespace ddx {
namespace {

using testing::files_in;
using testing::load_one;

constexpr std::uint32_t kSites = 3000;

std::string function_of(std::uint64_t count) { return "function_of_" + std::to_string(count % kSites); }

// All of a call can be told from its count.
void record_for_ever(int thread) {
  ddx_identify(2, 4, -1);
  const std::string name = "group " + std::to_string(thread) + std::string(100, '.');
  const std::int32_t ranks[] = {0, 1, 2, 9};
  DdxGroupInfo info{};
  info.size_of = sizeof(info);
  info.name = ddx_text(name.data(), name.size());
  info.size = 4;
  info.position = 2;
  info.device = -1;
  info.ranks = ranks;
  info.rank_count = 4;
  const std::uint32_t group = ddx_group(&info);
  for (std::uint64_t count = 1;; ++count) {
    const std::string function = function_of(count);
    const std::uint32_t words = ddx_text(function.data(), function.size());
    const std::int64_t splits[] = {static_cast<std::int64_t>(count), 2, 3, 4};
    const DdxValues more[] = {{1, count % 3 == 0 ? 4U : 0U, splits}};
    DdxCallInfo call{};
    call.size_of = sizeof(call);
    call.kind = static_cast<std::uint8_t>(count % 8 + 1);
    call.element = 12;
    call.group = group;
    call.peer = static_cast<std::int32_t>(count % 4);
    call.count = count;
    call.site = ddx_frame(0, words, words, static_cast<std::uint32_t>(count % kSites) + 1, 0);
    call.more = more;
    call.more_count = 1;
    const std::uint64_t id = ddx_begin(&call);
    ddx_returned(id, 0);
    ddx_ended(id, 0);
  }
}

// A process that records in two threads, from its file on: before that there is nothing to read.
pid_t start_recording(const testing::ScratchFolder& folder) {
  setenv("DDX_TRACE_DIR", folder.path().c_str(), 1);
  const pid_t child = fork();
  if (child == 0) {
    std::thread other(record_for_ever, 1);
    record_for_ever(0);
    _exit(0);
  }
  while (files_in(folder.path()).empty()) std::this_thread::yield();
  return child;
}

void expect_truth(const Evidence& evidence) {
  ASSERT_EQ(evidence.trace.ranks.size(), 1U);
  const Trace& trace = evidence.trace;
  const RankRecord& record = trace.ranks[0];
  EXPECT_EQ(record.rank, RankId(2));
  EXPECT_FALSE(record.whole_program);
  // Of the calls that each thread was in at most one was not written to its end, and its records behind it.
  EXPECT_LE(evidence.diagnostics.count_of("ddx.unwritten_record"), 2U * 2U);
  const Program& program = trace.program(record);
  for (std::size_t row = 0; row < program.size(); ++row) {
    const Signature& signature = trace.signature(program.signature(row));
    const std::uint64_t count = *signature.count_in;
    ASSERT_EQ(static_cast<std::uint64_t>(signature.kind), count % 8 + 1);
    ASSERT_EQ(trace.peer(record, signature), static_cast<std::int32_t>(count % 4));
    ASSERT_EQ(program.seq(row), count);
    ASSERT_EQ(signature.split_in.size(), count % 3 == 0 ? 4U : 0U);
    const CallSite& site = trace.call_site(*program.call_site(row));
    ASSERT_EQ(trace.text(site.frames[0].function), function_of(count));
    ASSERT_EQ(trace.communicator(record.comms[*program.comm_slot(row)]).members.size(), 4U);
  }
}

TEST(Killed, AtAnyMomentTheFileReads) {
  // Barriers have no count: kinds from all_reduce to all_to_all.
  static_assert(static_cast<int>(OpKind::all_reduce) == 1 && static_cast<int>(OpKind::all_to_all) == 8);
  std::mt19937_64 random(20261201);
  std::size_t calls = 0;
  for (int round = 0; round < 1000; ++round) {
    const testing::ScratchFolder folder;
    const pid_t child = start_recording(folder);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const std::vector<std::string> files = files_in(folder.path());
    ASSERT_EQ(files.size(), 1U);
    const Evidence evidence = load_one(files[0]);
    // Killed while it made the file: no capture yet.
    if (evidence.trace.ranks.empty()) continue;
    expect_truth(evidence);
    if (::testing::Test::HasFatalFailure()) FAIL() << "round " << round;
    calls += evidence.trace.program(evidence.trace.ranks[0]).size();
  }
  EXPECT_GT(calls, 10'000U);
}

// While its process goes on.
TEST(Killed, AGrowingFileReads) {
  const testing::ScratchFolder folder;
  setenv("DDX_TRACE_MIB", "4", 1);
  const pid_t child = start_recording(folder);
  bool lost_head = false;
  std::size_t read = 0;
  for (int round = 0; round < 200 && !(lost_head && round > 10); ++round) {
    const Evidence evidence = load_one(files_in(folder.path())[0]);
    if (evidence.trace.ranks.empty()) continue;
    ++read;
    lost_head = evidence.trace.ranks[0].head_lost;
    expect_truth(evidence);
    if (::testing::Test::HasFatalFailure()) break;
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  unsetenv("DDX_TRACE_MIB");
  EXPECT_GT(read, 0U);
}

}  // namespace
}  // namespace ddx
