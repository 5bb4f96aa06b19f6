// Call logs without communicators: synthetic ones, and those of a real job whose rank 2 was slowed on purpose (they
// have no licence, and are read from beside the project where they lie there).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <random>

#include "analyzers/analyzer.h"
#include "traces/formats/loader.h"
#include "traces/formats/megatrace.h"

namespace ddx::analyzers {
namespace {

void add_log(const std::string& path, const std::string& text, Evidence& evidence) {
  Evidence one;
  one.inputs.emplace_back();
  one.inputs.front().path = path;
  formats::megatrace_importer().read({path, text}, {}, one);
  evidence.merge(std::move(one));
}

// Two tensor groups of two (0,1), (2,3) whose hosts run ahead on one stream, and a world of four on another whose hosts
// wait for their calls: at the end of each step a sum, and a gather behind it.
struct LoggedJob {
  std::uint32_t steps = 60;
  std::optional<std::uint32_t> slow;
  std::uint32_t slow_from = 20, slow_until = 45;
  std::uint32_t lost_from = 0, lost_until = 0;  // steps that rank 1's ring lost
  bool one_world = true;  // else ranks 2 and 3 have a "world" of their own, with the same calls at other times
};

std::string line(std::uint32_t rank, Nanos time, const char* function, std::uint64_t count, int stream,
                 std::uint32_t op_count) {
  char text[256];
  std::snprintf(text, sizeof(text),
                "[save_count 1] [%lld.%09lld] [Rank %u] Fun %s Data %llu stream 0x5%u%d opCount %u\n",
                static_cast<long long>(time / kSecond), static_cast<long long>(time % kSecond), rank, function,
                static_cast<unsigned long long>(count), rank, stream, op_count);
  return text;
}

Evidence logged(const LoggedJob& job) {
  constexpr std::uint32_t kRanks = 4;
  std::mt19937_64 random(5);
  std::vector<std::string> logs(kRanks);
  std::vector<Nanos> now(kRanks, 1'755'590'104 * kSecond);
  std::vector<std::uint32_t> tensor(kRanks, 0), world(kRanks, 0);
  const auto jitter = [&](Nanos most) { return static_cast<Nanos>(random() % static_cast<std::uint64_t>(most)); };
  const auto meet = [&](std::uint32_t first, std::uint32_t last) {
    Nanos latest = 0;
    for (std::uint32_t rank = first; rank <= last; ++rank) latest = std::max(latest, now[rank]);
    for (std::uint32_t rank = first; rank <= last; ++rank) now[rank] = latest + 50 * kMicrosecond;
  };
  const auto meet_all = [&] {
    if (job.one_world) return meet(0, 3);
    meet(0, 1);
    meet(2, 3);
  };
  for (std::uint32_t step = 0; step < job.steps; ++step) {
    const auto put = [&](std::uint32_t rank, const std::string& text) {
      if (rank != 1 || step < job.lost_from || step >= job.lost_until) logs[rank] += text;
    };
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      for (int layer = 0; layer < 10; ++layer) {
        now[rank] += 500 * kMicrosecond + jitter(200 * kMicrosecond);
        put(rank, line(rank, now[rank], "AllReduce", 25165824, 1, tensor[rank]++));
      }
      now[rank] += 20 * kMillisecond + jitter(kMillisecond);
      put(rank, line(rank, now[rank], "AllReduce", 1, 0, world[rank]++));
    }
    meet_all();
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      const bool slow = job.slow == rank && step >= job.slow_from && step < job.slow_until;
      now[rank] += kMillisecond + jitter(100 * kMicrosecond) + (slow ? 30 * kMillisecond : 0);
      put(rank, line(rank, now[rank], "AllGather", 96, 0, world[rank]++));
    }
    meet_all();
  }
  Evidence evidence;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    add_log("rank_" + std::to_string(rank) + ".log", logs[rank], evidence);
  }
  return evidence;
}

std::vector<std::string> told(const Evidence& evidence) {
  std::vector<std::string> all;
  for (const Finding& f : analyze(evidence)) all.push_back(f.code + " " + f.ranks.text());
  return all;
}

using Told = std::vector<std::string>;

TEST(MegatraceJobs, a_rank_that_is_slow_for_a_while) {
  LoggedJob job;
  job.slow = 2;
  EXPECT_EQ(told(logged(job)), Told{"slow-rank 2"});
  job.slow = 0;
  EXPECT_EQ(told(logged(job)), Told{"slow-rank 0"});
}

TEST(MegatraceJobs, nobody_is_slow) { EXPECT_EQ(told(logged({})), Told{}); }

TEST(MegatraceJobs, what_a_ring_lost_is_no_call_left_out) {
  LoggedJob job;
  job.slow = 2;
  job.lost_from = 10;
  job.lost_until = 30;
  EXPECT_EQ(told(logged(job)), Told{"slow-rank 2"});
}

// The lists agree at every number; that they are not of one communicator shows in who waits for whom.
TEST(MegatraceJobs, streams_that_only_look_alike_are_not_one) {
  LoggedJob job;
  job.slow = 2;
  job.one_world = false;
  EXPECT_EQ(told(logged(job)), Told{});
}

// The logs of the real job where they lie beside the project; else there is no such test.
std::vector<std::vector<std::string>> real_jobs() {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(DDX_SOURCE_DIR) / ".." / "shared" / "samples";
  std::vector<std::string> paths;
  for (int rank = 0; rank < 8; ++rank) {
    const fs::path path = folder / ("megatrace_rank2_slow_rank_" + std::to_string(rank) + ".log.gz");
    if (!fs::exists(path)) return {};
    paths.push_back(path.string());
  }
  return {paths};
}

class RealMegatraceJob : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(RealMegatraceJob, whose_rank_2_was_slowed) {
  const Evidence evidence = formats::load(GetParam(), {});
  EXPECT_EQ(evidence.trace.ranks.size(), 8U);
  EXPECT_EQ(told(evidence), Told{"slow-rank 2"});
}

INSTANTIATE_TEST_SUITE_P(Beside, RealMegatraceJob, ::testing::ValuesIn(real_jobs()),
                         [](const auto&) { return "logs"; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RealMegatraceJob);

}  // namespace
}  // namespace ddx::analyzers
