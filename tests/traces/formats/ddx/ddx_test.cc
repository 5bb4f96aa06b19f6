// Capture files: what is written is what is read; and bytes that are no capture, or half of one.
#include "traces/formats/ddx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

#include "base/error.h"
#include "tests/support/random_program.h"
#include "tests/support/scratch_folder.h"
#include "traces/capture/writer.h"
#include "traces/formats/loader.h"
#include "traces/formats/ops.h"

namespace ddx::formats {
namespace {

using ::testing::HasSubstr;
using testing::ScratchFolder;

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

Evidence read(const std::string& bytes) {
  Evidence evidence;
  evidence.inputs.emplace_back().path = "process.ddx";
  ddx_importer().read({"process.ddx", bytes}, {}, evidence);
  return evidence;
}

// What the calls of one rank are, without what a capture does not hold: waits, and names that readers make.
std::vector<std::string> calls_of(const Trace& trace, const RankRecord& record) {
  std::vector<std::string> calls;
  const Program& program = trace.program(record);
  for (std::size_t row = 0; row < program.size(); ++row) {
    const Signature& s = trace.signature(program.signature(row));
    if (!is_collective(s.kind) && !is_p2p(s.kind)) continue;
    std::ostringstream out;
    out << name_of(s.kind) << ' ' << name_of(s.type_in) << ' ' << name_of(s.redop) << ' '
        << (s.count_in ? s.count_in : s.count_out).value_or(0) << ' ' << s.async << ' '
        << trace.peer(record, s).value_or(-1);
    const Communicator& communicator = trace.communicator(record.comms[*program.comm_slot(row)]);
    out << ' ' << trace.text(communicator.name) << " of";
    for (const RankId rank : communicator.members) out << ' ' << rank.value;
    out << " seq " << program.seq(row).value_or(0);
    calls.push_back(out.str());
  }
  return calls;
}

TEST(Ddx, WhatIsWrittenIsRead) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    testing::ProgramOptions options;
    options.seed = seed;
    options.world = 4;
    const testing::CallLists lists = testing::random_program(options);
    const Trace trace = testing::trace_of(lists);
    for (const RankRecord& record : trace.ranks) {
      const ScratchFolder folder;
      write_ddx(trace, record, folder.path("one.ddx"));
      const Evidence evidence = read(bytes_of(folder.path("one.ddx")));
      ASSERT_EQ(evidence.trace.ranks.size(), 1U);
      EXPECT_EQ(evidence.trace.ranks[0].rank, record.rank);
      EXPECT_EQ(calls_of(evidence.trace, evidence.trace.ranks[0]), calls_of(trace, record)) << "seed " << seed;
    }
  }
}

// One capture to be spoilt.
std::string sample() {
  testing::ProgramOptions options;
  options.seed = 7;
  const Trace trace = testing::trace_of(testing::random_program(options));
  const ScratchFolder folder;
  write_ddx(trace, trace.ranks[0], folder.path("one.ddx"));
  return bytes_of(folder.path("one.ddx"));
}

std::string refusal(const std::string& bytes) {
  try {
    read(bytes);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Ddx, AHeaderThatIsNoneIsRefused) {
  const std::string good = sample();
  EXPECT_EQ(refusal(good), "");
  EXPECT_THAT(refusal(good.substr(0, 100)), HasSubstr("at byte 100: the header of 4096 bytes is cut"));
  EXPECT_THAT(refusal("ddxtracf" + good.substr(8)), HasSubstr("expected 'ddxtrace'"));
  std::string later = good;
  later[8] = 9;
  EXPECT_THAT(refusal(later), HasSubstr("version 9 of the capture format, expected 1"));
  // Sizes, the ring, the number of records.
  for (const std::size_t at : {12U, 16U, 20U, 24U}) {
    std::string bad = good;
    std::memset(bad.data() + at, 0xff, 4);
    EXPECT_THAT(refusal(bad), HasSubstr("at byte 12")) << at;
  }
  std::string endless = good;
  std::memset(endless.data() + offsetof(capture::Header, next_ring), 0xff, 8);
  EXPECT_THAT(refusal(endless), HasSubstr("at byte 12"));
}

TEST(Ddx, ACutFileKeepsItsBeginning) {
  const std::string good = sample();
  const Evidence whole = read(good);
  const std::size_t all = whole.trace.program(whole.trace.ranks[0]).size();
  // The first segment is the ring's, behind the header: two records of it are left.
  const Evidence cut = read(good.substr(0, capture::kHeaderBytes + 3 * capture::kRecordBytes));
  ASSERT_EQ(cut.trace.ranks.size(), 1U);
  EXPECT_LT(cut.trace.program(cut.trace.ranks[0]).size(), all);
  EXPECT_TRUE(cut.trace.ranks[0].tail_lost);
  EXPECT_EQ(cut.diagnostics.count_of("ddx.truncated_file"), 1U);
  EXPECT_GT(cut.diagnostics.count_of("ddx.unwritten_record"), 0U);
}

// Whatever the numbers are, what is read of them can be subtracted from each other.
TEST(Ddx, TimesThatNoClockShowsAreLeftOut) {
  const std::string good = sample();
  const std::int64_t bad[] = {INT64_MIN, INT64_MIN + 1, -1, INT64_MAX, INT64_MAX - 1, std::int64_t{1} << 62};
  for (const std::int64_t issue : bad) {
    for (const std::int64_t end : bad) {
      std::string bytes = good;
      char* call = bytes.data() + capture::kHeaderBytes + capture::kRecordBytes;
      std::memcpy(call + offsetof(capture::Call, issue), &issue, sizeof(issue));
      std::memcpy(call + offsetof(capture::Call, start), &issue, sizeof(issue));
      std::memcpy(call + offsetof(capture::Call, end), &end, sizeof(end));
      const Evidence evidence = read(bytes);
      const Program& program = evidence.trace.program(evidence.trace.ranks.at(0));
      for (const auto& time : {program.issue(0), program.start(0), program.end(0)}) {
        EXPECT_TRUE(!time || (*time > 0 && *time <= std::int64_t{1} << 62)) << issue << ' ' << end;
      }
      // An end before its issue is none to begin with.
      const std::int64_t latest = std::int64_t{1} << 62;
      EXPECT_EQ(evidence.diagnostics.count_of("ddx.bad_time") > 0, issue != latest || end > latest);
    }
  }
}

// Any record may be damaged: the others stand.
TEST(Ddx, DamageStaysWhereItIs) {
  const std::string good = sample();
  const Evidence whole = read(good);
  const std::size_t all = whole.trace.program(whole.trace.ranks[0]).size();
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    std::string bad = good;
    const std::size_t used = capture::kHeaderBytes + capture::kRecordBytes * (all + 8);
    for (int i = 0; i < 4; ++i) {
      bad[capture::kHeaderBytes + random() % (used - capture::kHeaderBytes)] = static_cast<char>(random());
      // Of the tables' segment.
      bad[capture::kHeaderBytes + capture::kSegmentBytes + random() % 4096] = static_cast<char>(random());
    }
    const Evidence evidence = read(bad);
    if (evidence.trace.ranks.empty()) continue;
    EXPECT_LE(evidence.trace.program(evidence.trace.ranks[0]).size(), all);
  }
}

}  // namespace
}  // namespace ddx::formats
