// The recorder through its C interface: what was told is what the file says, by whichever threads, processes and
// limits.
#include "live/capture/ddx_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <thread>

#include "tests/live/capture/in_child.h"
#include "tests/support/scratch_folder.h"

namespace ddx {
namespace {

using ::testing::ElementsAre;
using testing::files_in;
using ::testing::HasSubstr;
using testing::in_child;
using ::testing::IsEmpty;
using testing::load_one;
using ::testing::SizeIs;
namespace fs = std::filesystem;

constexpr std::uint8_t kAllReduce = 1, kAllToAll = 8, kSend = 10;
constexpr std::uint8_t kFloat = 11, kSum = 1;
constexpr std::uint8_t kTorch = 1, kNccl = 2;

class Recorder : public ::testing::Test, protected testing::ScratchFolder {
 protected:
  void SetUp() override {
    for (const char* name :
         {"RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "DDX_TRACE_MIB"}) {
      unsetenv(name);
    }
    setenv("DDX_TRACE_DIR", path().c_str(), 1);
  }
  static std::uint32_t text(const std::string& words) { return ddx_text(words.data(), words.size()); }
  static std::uint32_t group(const std::string& name, const std::vector<std::int32_t>& ranks, std::int32_t position,
                             std::uint32_t outer = 0) {
    DdxGroupInfo info{};
    info.size_of = sizeof(info);
    info.layer = outer == 0 ? kTorch : kNccl;
    info.name = name.empty() ? 0 : text(name);
    info.backend = text("gloo");
    info.outer = outer;
    info.size = static_cast<std::int32_t>(ranks.size());
    info.position = position;
    info.device = -1;
    info.ranks = outer == 0 ? ranks.data() : nullptr;
    info.rank_count = outer == 0 ? ranks.size() : 0;
    return ddx_group(&info);
  }
  static DdxCallInfo call(std::uint32_t in_group, std::uint8_t kind, std::uint64_t count) {
    DdxCallInfo info{};
    info.size_of = sizeof(info);
    info.layer = kTorch;
    info.kind = kind;
    info.element = kFloat;
    info.reduction = kind == kAllReduce ? kSum : 0;
    info.group = in_group;
    info.peer = -1;
    info.count = count;
    return info;
  }
  Evidence captured() const {
    const std::vector<std::string> files = files_in(path());
    EXPECT_THAT(files, SizeIs(1));
    return files.empty() ? Evidence() : load_one(files.front());
  }
};

TEST_F(Recorder, SaysWhatItWasTold) {
  in_child([] {
    ddx_identify(1, 4, -1);
    const std::uint32_t world = group("default_pg", {0, 1, 2, 3}, 1);
    const std::uint32_t odd = group("odd", {5, 1, 3}, 1);
    const std::uint32_t file = text("train.py");
    const std::uint32_t outer = ddx_frame(0, text("main"), file, 90, 0);
    const std::uint32_t inner = ddx_frame(outer, text("step"), file, 12, 0);

    DdxCallInfo info = call(world, kAllReduce, 1000);
    info.site = inner;
    const std::uint64_t first = ddx_begin(&info);
    ddx_returned(first, 0);
    ddx_started(first, 0);
    ddx_ended(first, 0);

    DdxCallInfo split = call(world, kAllToAll, 40);
    const std::int64_t in[] = {1, 2, 3, 4, 5, 6, 7, 8, 4}, out[] = {10, 10};
    const DdxValues more[] = {{1, std::size(in), in}, {2, std::size(out), out}};
    split.more = more;
    split.more_count = std::size(more);
    ddx_returned(ddx_begin(&split), 0);

    DdxCallInfo send = call(odd, kSend, 7);
    send.peer = 2;
    const std::int64_t tag[] = {77};
    const DdxValues tags[] = {{4, 1, tag}};
    send.more = tags;
    send.more_count = 1;
    ddx_returned(ddx_begin(&send), 5);
  });
  const Evidence evidence = captured();
  const Trace& trace = evidence.trace;
  ASSERT_THAT(trace.ranks, SizeIs(1));
  const RankRecord& record = trace.ranks[0];
  EXPECT_EQ(record.rank, RankId(1));
  EXPECT_EQ(trace.world_size, 4U);
  EXPECT_TRUE(record.whole_program);
  const Program& program = trace.program(record);
  ASSERT_EQ(program.size(), 3U);

  const Op reduce = program.at(OpId(0));
  const Signature& reduced = trace.signature(reduce.signature);
  EXPECT_EQ(reduced.kind, OpKind::all_reduce);
  EXPECT_EQ(reduced.type_in, DataType::f32);
  EXPECT_EQ(reduced.redop, RedOp::sum);
  EXPECT_EQ(reduced.count_in, 1000U);
  EXPECT_EQ(reduce.state, OpState::completed);
  EXPECT_LE(*reduce.issue, *reduce.start);
  EXPECT_LE(*reduce.start, *reduce.end);
  EXPECT_EQ(reduce.seq, 1U);
  const Communicator& world = trace.communicator(record.comms[*reduce.comm_slot]);
  EXPECT_EQ(trace.text(world.name), "default_pg");
  EXPECT_THAT(world.members, ElementsAre(RankId(0), RankId(1), RankId(2), RankId(3)));
  ASSERT_TRUE(reduce.call_site);
  const CallSite& site = trace.call_site(*reduce.call_site);
  ASSERT_THAT(site.frames, SizeIs(2));
  EXPECT_EQ(trace.text(site.frames[0].function), "step");
  EXPECT_EQ(site.frames[0].line, 12U);
  EXPECT_EQ(trace.text(site.frames[1].function), "main");

  const Op all_to_all = program.at(OpId(1));
  EXPECT_EQ(all_to_all.seq, 2U);
  EXPECT_EQ(all_to_all.state, OpState::scheduled);
  EXPECT_THAT(trace.signature(all_to_all.signature).split_in, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 4));
  EXPECT_THAT(trace.signature(all_to_all.signature).split_out, ElementsAre(10, 10));

  const Op send = program.at(OpId(2));
  EXPECT_EQ(send.seq, 1U);  // of its own counter
  EXPECT_EQ(trace.signature(send.signature).tag, 77);
  EXPECT_EQ(trace.peer(record, trace.signature(send.signature)), 2);
  EXPECT_THAT(trace.communicator(record.comms[*send.comm_slot]).members, ElementsAre(RankId(5), RankId(1), RankId(3)));
  EXPECT_NE(send.state, OpState::completed);
}

// A call of an inner layer gives its times to the call that made it, whose group it works for.
TEST_F(Recorder, InnerCallsAreJoined) {
  in_child([] {
    ddx_identify(0, 2, 0);
    const std::uint32_t outer_group = group("dp", {0, 1}, 0);
    DdxCallInfo outer = call(outer_group, kAllReduce, 8);
    outer.flags = 0x20;  // it cannot tell its end
    const std::uint64_t id = ddx_begin(&outer);
    EXPECT_EQ(ddx_current(), id);
    const std::uint32_t comm = group("", {0, 1}, 0, outer_group);
    std::uint64_t inner[2];
    for (std::uint64_t& one : inner) {
      DdxCallInfo info = call(comm, kAllReduce, 4);
      info.layer = kNccl;
      one = ddx_begin(&info);
      EXPECT_EQ(ddx_current(), one);
      ddx_returned(one, 0);
      EXPECT_EQ(ddx_current(), id);
    }
    ddx_returned(id, 0);
    EXPECT_EQ(ddx_current(), 0U);
    for (const std::uint64_t one : inner) ddx_started(one, 1000);
    ddx_ended(inner[0], std::int64_t{1'000'000'000'000'000'000});
    ddx_ended(inner[1], std::int64_t{1'000'000'000'000'000'000} + 5);
    // Alone, by nobody's call.
    DdxCallInfo lone = call(comm, kAllReduce, 16);
    lone.layer = kNccl;
    ddx_returned(ddx_begin(&lone), 0);
  });
  const Evidence evidence = captured();
  const Trace& trace = evidence.trace;
  ASSERT_THAT(trace.ranks, SizeIs(1));
  const Program& program = trace.program(trace.ranks[0]);
  ASSERT_EQ(program.size(), 2U);
  EXPECT_EQ(trace.signature(program.signature(0)).count_in, 8U);
  EXPECT_EQ(program.state(0), OpState::completed);
  EXPECT_EQ(*program.end(0) - *program.start(0), std::int64_t{1'000'000'000'000'000'000} + 5 - 1000);
  EXPECT_EQ(trace.signature(program.signature(1)).count_in, 16U);
  // The communicator has the name of the process group, and its members.
  const RankRecord& record = trace.ranks[0];
  EXPECT_EQ(record.comms[*program.comm_slot(0)], record.comms[*program.comm_slot(1)]);
}

TEST_F(Recorder, ThreadsLoseNothing) {
  constexpr int kThreads = 8;
  constexpr std::uint64_t kCalls = 20'000;
  in_child([] {
    ddx_identify(0, 1, -1);
    const std::uint32_t shared = group("shared", {0}, 0);
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([shared, thread] {
        for (std::uint64_t i = 0; i < kCalls; ++i) {
          // Its own text and frame, that others intern at the same time.
          const std::uint32_t function = text("f" + std::to_string(i % 500));
          DdxCallInfo info = call(shared, kAllReduce, static_cast<std::uint64_t>(thread) * kCalls + i);
          info.site = ddx_frame(0, function, function, static_cast<std::uint32_t>(i % 500) + 1, 0);
          const std::uint64_t id = ddx_begin(&info);
          ddx_returned(id, 0);
          ddx_ended(id, 0);
        }
      });
    }
  });
  const Evidence evidence = captured();
  ASSERT_THAT(evidence.trace.ranks, SizeIs(1));
  EXPECT_TRUE(evidence.diagnostics.empty());
  const Trace& trace = evidence.trace;
  const Program& program = trace.program(trace.ranks[0]);
  ASSERT_EQ(program.size(), kThreads * kCalls);
  std::set<std::uint64_t> counts, seqs;
  for (std::size_t row = 0; row < program.size(); ++row) {
    const std::uint64_t count = *trace.signature(program.signature(row)).count_in;
    counts.insert(count);
    seqs.insert(*program.seq(row));
    const CallSite& site = trace.call_site(*program.call_site(row));
    ASSERT_EQ(trace.text(site.frames[0].function), "f" + std::to_string(count % kCalls % 500));
    ASSERT_EQ(site.frames[0].line, count % kCalls % 500 + 1);
    ASSERT_EQ(program.state(row), OpState::completed);
  }
  EXPECT_THAT(counts, SizeIs(kThreads * kCalls));
  EXPECT_EQ(*seqs.begin(), 1U);
  EXPECT_EQ(*seqs.rbegin(), kThreads * kCalls);
}

TEST_F(Recorder, AForkedChildHasItsOwnFile) {
  in_child([] {
    ddx_identify(3, 8, -1);
    const std::uint32_t world = group("world", {3}, 0);
    DdxCallInfo info = call(world, kAllReduce, 1);
    ddx_returned(ddx_begin(&info), 0);
    // Loaders fork and record nothing; others do.
    in_child([] {});
    in_child([] {
      const std::uint32_t own = group("child", {3}, 0);
      DdxCallInfo again = call(own, kAllReduce, 2);
      ddx_returned(ddx_begin(&again), 0);
    });
    ddx_returned(ddx_begin(&info), 0);
  });
  std::set<std::size_t> sizes;
  for (const std::string& file : files_in(path())) {
    const Evidence evidence = load_one(file);
    ASSERT_THAT(evidence.trace.ranks, SizeIs(1));
    sizes.insert(evidence.trace.program(evidence.trace.ranks[0]).size());
  }
  EXPECT_THAT(sizes, ElementsAre(1, 2));
}

// The oldest calls make room; what is left is in order and whole, and says that its head is lost.
TEST_F(Recorder, ALongRunKeepsItsEnd) {
  constexpr std::uint64_t kCalls = 150'000;
  setenv("DDX_TRACE_MIB", "4", 1);
  in_child([] {
    ddx_identify(0, 1, -1);
    const std::uint32_t world = group("world", {0}, 0);
    for (std::uint64_t i = 1; i <= kCalls; ++i) {
      DdxCallInfo info = call(world, kAllReduce, i);
      ddx_returned(ddx_begin(&info), 0);
    }
  });
  EXPECT_LE(fs::file_size(files_in(path()).front()), 6U << 20);
  const Evidence evidence = captured();
  ASSERT_THAT(evidence.trace.ranks, SizeIs(1));
  const RankRecord& record = evidence.trace.ranks[0];
  EXPECT_TRUE(record.head_lost);
  EXPECT_FALSE(record.whole_program);
  const Program& program = evidence.trace.program(record);
  ASSERT_GT(program.size(), 16'000U);
  for (std::size_t row = 0; row < program.size(); ++row) {
    const std::uint64_t expected = kCalls - program.size() + row + 1;
    ASSERT_EQ(evidence.trace.signature(program.signature(row)).count_in, expected);
    ASSERT_EQ(program.seq(row), expected);
  }
}

TEST_F(Recorder, RecordsNothingWithoutAFolder) {
  const auto record = [] {
    const std::uint32_t world = group("world", {0}, 0);
    DdxCallInfo info = call(world, kAllReduce, 1);
    const std::uint64_t id = ddx_begin(&info);
    ddx_returned(id, 1);
    ddx_ended(id, 0);
    ddx_event(1, 1, 0, 0, 0, 0);
    if (ddx_recording() != 0 || id != 0 || world != 0) _exit(1);
  };
  unsetenv("DDX_TRACE_DIR");
  EXPECT_EQ(in_child(record), 0);
  for (const std::string& folder : {path("absent"), path() + "/\x01", std::string("/proc/1/nowhere")}) {
    setenv("DDX_TRACE_DIR", folder.c_str(), 1);
    EXPECT_EQ(in_child(record), 0) << folder;
  }
  EXPECT_THAT(files_in(path()), IsEmpty());
}

// Beyond a limit on files a write ends the process with a signal: the recorder stops before it.
TEST_F(Recorder, StopsAtALimitOnFiles) {
  const int status = in_child([] {
    const rlimit limit{4U << 20, 4U << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    ddx_identify(0, 1, -1);
    const std::uint32_t world = group("world", {0}, 0);
    for (std::uint64_t i = 0; i < 100'000; ++i) {
      DdxCallInfo info = call(world, kAllReduce, i);
      ddx_returned(ddx_begin(&info), 0);
    }
  });
  EXPECT_EQ(status, 0);
  const Evidence evidence = captured();
  ASSERT_THAT(evidence.trace.ranks, SizeIs(1));
  EXPECT_TRUE(evidence.trace.ranks[0].tail_lost);
  EXPECT_GT(evidence.trace.program(evidence.trace.ranks[0]).size(), 10'000U);
  EXPECT_EQ(evidence.diagnostics.count_of("ddx.stopped"), 1U);
  EXPECT_GT(evidence.diagnostics.count_of("ddx.lost_calls"), 0U);
}

TEST_F(Recorder, NamesOfAnyKindAndLength) {
  const std::vector<std::string> names{"x",
                                       std::string(55, 'a'),
                                       std::string(56, 'b'),
                                       std::string(57, 'c'),
                                       std::string(112, 'd'),
                                       std::string(500, 'e')};
  in_child([&] {
    ddx_identify(0, 1, -1);
    for (const std::string& name : names) {
      const std::uint32_t id = text(name);
      if (id == 0 || text(name) != id) _exit(1);
      DdxCallInfo info = call(group(name, {0}, 0), kAllReduce, 1);
      ddx_returned(ddx_begin(&info), 0);
    }
  });
  const Evidence evidence = captured();
  ASSERT_THAT(evidence.trace.ranks, SizeIs(1));
  std::vector<std::string> read;
  for (const CommId comm : evidence.trace.ranks[0].comms) {
    read.emplace_back(evidence.trace.text(evidence.trace.communicator(comm).name));
  }
  EXPECT_EQ(read, names);
}

TEST_F(Recorder, GroupsOfAnyShape) {
  std::vector<std::vector<std::int32_t>> shapes{{0}, {7, 3}, {0, 1, 2, 3}, {0, 8, 16, 24}, {9, 6, 3, 0}, {1, 2, 4, 8}};
  std::vector<std::int32_t> many(1000);
  std::iota(many.begin(), many.end(), 0);
  std::swap(many[0], many[999]);
  shapes.push_back(many);
  in_child([&] {
    ddx_identify(0, 1, -1);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      DdxCallInfo info = call(group("g" + std::to_string(i), shapes[i], 0), kAllReduce, 1);
      ddx_returned(ddx_begin(&info), 0);
    }
  });
  const Evidence evidence = captured();
  ASSERT_THAT(evidence.trace.ranks, SizeIs(1));
  std::vector<std::vector<std::int32_t>> read;
  for (const CommId comm : evidence.trace.ranks[0].comms) {
    auto& ranks = read.emplace_back();
    for (const RankId rank : evidence.trace.communicator(comm).members) ranks.push_back(rank.value);
  }
  EXPECT_EQ(read, shapes);
}

// As launchers say it, where nobody else did.
TEST_F(Recorder, TakesItsRankFromTheEnvironment) {
  const std::vector<std::pair<const char*, const char*>> names{
      {"RANK", "WORLD_SIZE"}, {"SLURM_PROCID", "SLURM_NTASKS"}, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}};
  for (const auto& [rank, size] : names) {
    setenv(rank, "5", 1);
    setenv(size, "16", 1);
    in_child([] { ddx_event(7, 0, 0, 0, 0, 1); });
    unsetenv(rank);
    unsetenv(size);
    const Evidence evidence = captured();
    ASSERT_THAT(evidence.trace.ranks, SizeIs(1));
    EXPECT_EQ(evidence.trace.ranks[0].rank, RankId(5)) << rank;
    EXPECT_EQ(evidence.trace.world_size, 16U) << size;
    fs::remove(files_in(path()).front());
  }
}

}  // namespace
}  // namespace ddx
