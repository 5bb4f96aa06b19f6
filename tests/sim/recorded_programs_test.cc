// Programs of recorded traces. Right values: worked out by hand from the times in each trace.
#include "sim/replay/recorded_programs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzers/breakdown/breakdown.h"
#include "sim/network/rate.h"
#include "sim/replay/flat_costs.h"
#include "sim/replay/reference_replay.h"
#include "tests/support/ops_text.h"
#include "tests/support/random_program.h"

namespace ddx::sim {
namespace {

using ddx::testing::trace_of;
using ::testing::HasSubstr;

ReplayResult timed(const Trace& trace, const LinkSpec& port, ReplayOptions options = {}) {
  FlatOptions flat;
  flat.port = port;
  flat.algorithm = find_algorithm("ring");
  const auto costs = flat_costs(flat);
  options.timing.costs = costs.get();
  ReplayResult result = replay(trace, options);
  EXPECT_EQ(result.outcome, ReplayResult::Outcome::completes) << result.reason;
  return result;
}

struct Played {
  Recorded recorded;
  ReplayResult result;
  Nanos end = 0;
  TimeShares of(std::size_t rank) const { return result.shares.at(rank); }
};

// 1 GB/s, 1 us; and where nothing takes time but what the trace says.
constexpr LinkSpec kSlow{1'000'000'000, 1'000'000};
constexpr LinkSpec kNone{kMostRate, 0};

Played play(const std::string& ops, const LinkSpec& port = kNone, const ReplayOptions& options = {}) {
  Trace trace = trace_of(ops);
  Played played;
  played.recorded = take_recorded(trace);
  played.result = timed(trace, port, options);
  for (const Picos end : played.result.rank_end) played.end = std::max(played.end, to_nanos(end));
  return played;
}

TimeShares shares(Nanos compute, Nanos communication, Nanos bubble, Nanos idle, Nanos unattributed, Nanos waiting = 0,
                  Nanos overlapped = 0) {
  return {from_nanos(compute),      from_nanos(communication), from_nanos(bubble),    from_nanos(idle),
          from_nanos(unattributed), from_nanos(waiting),       from_nanos(overlapped)};
}

// Two kernels of 10 us with 20 us of nothing between them.
constexpr const char* kGap =
    "world 1\n0 record part\n"
    "0 compute 10us stream=7 start=1000000 end=1010000\n"
    "0 compute 10us stream=7 start=1030000 end=1040000\n";

TEST(RecordedPrograms, a_gap_between_kernels_is_idle_and_no_computation) {
  const Played recorded = play(kGap);
  EXPECT_EQ(recorded.end, 40'000);
  EXPECT_EQ(recorded.of(0), shares(20'000, 0, 0, 20'000, 0));
}

TEST(RecordedPrograms, what_stretches_computations_leaves_gaps_as_they_are) {
  ReplayOptions options;
  options.timing.compute_factors = {2 * kWholeLength};
  const Played slower = play(kGap, kNone, options);
  EXPECT_EQ(slower.end, 60'000);
  EXPECT_EQ(slower.of(0), shares(40'000, 0, 0, 20'000, 0));
  options.timing.compute_factors = {kWholeLength / 2};
  EXPECT_EQ(play(kGap, kNone, options).of(0), shares(10'000, 0, 0, 20'000, 0));
  options.timing.compute_factors.clear();
  options.timing.noise_ppm = 300'000;
  const TimeShares noisy = play(kGap, kNone, options).of(0);
  EXPECT_EQ(noisy.idle, from_nanos(20'000));
  EXPECT_NE(noisy.compute, from_nanos(20'000));
}

TEST(RecordedPrograms, between_calls_alone_nothing_is_known) {
  const Played calls =
      play("world 2\nall record part\nall barrier start=0 end=1000\nall barrier start=5000 end=6000\n");
  EXPECT_EQ(calls.end, 4'000) << "the calls take nothing here, and the second began 4 us after the first";
  EXPECT_EQ(calls.of(1), shares(0, 0, 0, 0, 4'000));
}

// stream 7: |0 - 10|          |30 - 40|
// stream 9:        |10 - 25|            an all_reduce
TEST(RecordedPrograms, what_waits_for_a_call_begins_when_it_ends) {
  const std::string ops =
      "world 2\nall record part\n"
      "all compute 10us stream=7 start=0 end=10000\n"
      "all all_reduce i8 4000 stream=9 start=10000 end=25000\n"
      "all compute 10us stream=7 start=30000 end=40000\n";
  // On 1 GB/s and 1 us the all_reduce of 4,000 bytes takes 2 x (1 + 2) us in place of 15.
  const Played recorded = play(ops, kSlow);
  EXPECT_EQ(recorded.end, 10'000 + 6'000 + 5'000 + 10'000);
  EXPECT_EQ(recorded.of(0), shares(20'000, 6'000, 0, 5'000, 0));
  EXPECT_TRUE(why_untimed(recorded.recorded).empty());
}

// The same job with the times of one call and of none of its neighbours lost, whichever it is.
TEST(RecordedPrograms, a_call_without_times_stands_between_its_neighbours) {
  constexpr int kSteps = 6;
  const auto job = [](int lost) {
    std::string ops = "world 2\nall record part\n";
    for (int step = 0; step < kSteps; ++step) {
      const int at = step * 50'000;
      ops += fmt::format("all compute 30us stream=7 start={} end={}\n", at, at + 30'000);
      ops += fmt::format("all all_reduce i8 4000 stream=9 issue={}", at + 29'000);
      ops += step == lost ? "\n" : fmt::format(" start={} end={}\n", at + 30'000, at + 36'000);
    }
    return ops;
  };
  const Played whole = play(job(-1), kSlow);
  EXPECT_EQ(whole.end, (kSteps - 1) * 50'000 + 36'000);
  for (int lost = 0; lost < kSteps; ++lost) {
    const Played part = play(job(lost), kSlow);
    // Where it stood is known to a microsecond, by its issue.
    EXPECT_NEAR(static_cast<double>(part.end), static_cast<double>(whole.end), 15'000) << lost;
    EXPECT_EQ(part.of(0).compute, whole.of(0).compute) << lost;
    EXPECT_TRUE(why_untimed(part.recorded).empty()) << lost;
    EXPECT_THAT(part.recorded.assumed, ::testing::Contains(HasSubstr("2 operations without a time"))) << lost;
  }
}

TEST(RecordedPrograms, a_rank_whose_calls_have_no_times_is_not_timed_if_it_computes) {
  const Played untimed = play(
      "world 2\nall record part\n"
      "all compute 30us stream=7 start=0 end=30000\nall all_reduce i8 4000\n"
      "all compute 30us stream=7 start=50000 end=80000\nall all_reduce i8 4000\n");
  EXPECT_EQ(why_untimed(untimed.recorded),
            "2 of 2 calls of rank 0 have no times, so that nobody knows which of its computations come before which "
            "call; 2 of 2 calls of rank 1 have no times, so that nobody knows which of its computations come before "
            "which call");
  const Played calls = play("world 2\nall record part\nall all_reduce i8 4000\nall all_reduce i8 4000\n", kSlow);
  EXPECT_TRUE(why_untimed(calls.recorded).empty()) << "calls alone are timed by themselves";
  EXPECT_EQ(calls.end, 12'000);
}

TEST(RecordedPrograms, what_is_not_told_of_calls_is_told_apart) {
  Trace trace = trace_of(
      "world 2\nall record part\n"
      "0 unknown f32 8 name=\"teleport\" start=0 end=1000\n"
      "0 all_reduce f32 8 no_group start=2000 end=3000\n0 all_reduce f32 8 no_group start=3000 end=4000\n"
      "0 coalesced no_group start=5000 end=6000\n"
      "all barrier start=7000 end=8000\n");
  const Recorded recorded = take_recorded(trace);
  ASSERT_EQ(recorded.unknown.size(), 3U);
  EXPECT_EQ(recorded.unknown[0].what, NotTold::kind);
  EXPECT_EQ(recorded.unknown[0].name, "teleport");
  EXPECT_EQ(recorded.unknown[0].ranks, RankSet{RankId(0)});
  EXPECT_EQ(recorded.unknown[1].what, NotTold::group);
  EXPECT_EQ(recorded.unknown[1].name, "all_reduce");
  EXPECT_EQ(recorded.unknown[1].calls, 2U);
  EXPECT_EQ(recorded.unknown[2].name, "coalesced");
  EXPECT_EQ(recorded.unknown_calls, 4U);
  EXPECT_EQ(recorded.calls, 6U);
  EXPECT_EQ(why_untimed(recorded),
            "4 of 6 calls have no time on another network: not recorded are the group of 2 all_reduce of rank 0, the "
            "kind of 1 teleport of rank 0, the group of 1 coalesced of rank 0");
  for (const Signature& signature : trace.signatures()) {
    EXPECT_NE(signature.kind, OpKind::compute) << "no call is a computation";
  }
}

// A wait in a loop is for the latest round, in a record as in a whole program.
TEST(RecordedPrograms, waits_are_for_what_they_were_for) {
  const std::string body = "repeat 3\nall all_reduce i8 1000 async\nend\nall wait 0\nall compute 1s\n";
  // Three times 2 x (1 + 0.5) us, then a second.
  EXPECT_EQ(play("world 2\n" + body, kSlow).end, 1'000'009'000);
  EXPECT_EQ(play("world 2\nall record part\n" + body, kSlow).end, 1'000'009'000);
  // What is passed over keeps its number.
  const std::string two =
      "world 2\nall record part\nall unknown f32 8 name=\"teleport\" async\nall all_reduce i8 1000 async\n"
      "all wait 0\nall compute 1s\nall wait 1\nall compute 1s\n";
  EXPECT_EQ(play(two, kSlow).end, 2'000'000'000);
}

TEST(RecordedPrograms, waits_that_were_recorded_with_times_stay_with_their_calls) {
  const Played timed = play(
      "world 2\nall record part\n"
      "all compute 5us start=0 end=5000\n"
      "all all_reduce i8 1000 async start=5000 end=8000\n"
      "all compute 10us start=5000 end=15000\n"
      "all wait 0 start=15000 end=15000\nall compute 1us start=15000 end=16000\n",
      kSlow);
  EXPECT_EQ(timed.end, 16'000);
  EXPECT_EQ(timed.of(0), shares(16'000, 0, 0, 0, 0, 0, 3'000));  // the call beside the second one
}

// Both send before they receive: one after the other they would wait for ever.
TEST(RecordedPrograms, what_was_posted_together_is_posted_together) {
  for (const bool times : {false, true}) {
    const std::string when = times ? " start=0 end=1000" : "";
    for (const bool marked : {false, true}) {
      std::string ops = "world 2\nall record part\n";
      for (const int rank : {0, 1}) {
        const std::string group = marked ? "" : " group=4";
        if (marked) ops += fmt::format("{} group_begin\n", rank);
        ops += fmt::format("{} send f32 8 to {}{}{}\n{} recv f32 8 from {}{}{}\n", rank, 1 - rank, group, when, rank,
                           1 - rank, group, when);
        if (marked) ops += fmt::format("{} group_end\n", rank);
      }
      Trace trace = trace_of(ops);
      take_recorded(trace);
      EXPECT_EQ(replay(trace).outcome, ReplayResult::Outcome::completes) << ops;
    }
  }
}

// Stage s of p: min(p - s - 1, m) forward first, then one forward and one backward in turn, then the backward ones that
// are left. Forward f, backward b: (m + p - 1)(f + b) in all, of which each stage works m (f + b).
std::string pipeline(int stages, int batches, int forward_us, int backward_us) {
  std::string ops = fmt::format("world {}\n", stages);
  for (int s = 0; s < stages; ++s) {
    const auto forward = [&] {
      if (s > 0) ops += fmt::format("{} recv f32 1 from {} stream=1\n", s, s - 1);
      ops += fmt::format("{} compute {}us\n", s, forward_us);
      if (s + 1 < stages) ops += fmt::format("{} send f32 1 to {} stream=2 async\n", s, s + 1);
    };
    const auto backward = [&] {
      if (s + 1 < stages) ops += fmt::format("{} recv f32 1 from {} stream=3\n", s, s + 1);
      ops += fmt::format("{} compute {}us\n", s, backward_us);
      if (s > 0) ops += fmt::format("{} send f32 1 to {} stream=4 async\n", s, s - 1);
    };
    const int ahead = std::min(stages - s - 1, batches);
    for (int i = 0; i < ahead; ++i) forward();
    for (int i = ahead; i < batches; ++i) {
      forward();
      backward();
    }
    for (int i = 0; i < ahead; ++i) backward();
  }
  return ops;
}

TEST(TimeShares, the_bubble_of_1f1b_is_p_minus_1_over_m_plus_p_minus_1) {
  for (const auto& [stages, batches] : {std::pair(2, 2), std::pair(4, 8), std::pair(8, 8), std::pair(3, 16)}) {
    const Played whole = play(pipeline(stages, batches, 1'000, 2'000));
    const Nanos step = (batches + stages - 1) * Nanos{3'000'000};
    ASSERT_EQ(whole.end, step) << stages;
    for (int s = 0; s < stages; ++s) {
      const TimeShares& part = whole.of(static_cast<std::size_t>(s));
      EXPECT_EQ(part, shares(batches * Nanos{3'000'000}, 0, (stages - 1) * Nanos{3'000'000}, 0, 0)) << stages << s;
    }
  }
}

// One definition: the replay's sweep, and the breakdown of the trace that it predicts.
TEST(TimeShares, are_what_the_breakdown_says_of_the_predicted_trace) {
  int bubbles = 0, waits = 0, overlaps = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    ddx::testing::ProgramOptions program;
    program.seed = seed;
    ReplayOptions options;
    options.timing.compute_factors.assign(64, kWholeLength);
    ddx::testing::CallLists lists = random_program(program);
    const Trace trace = ddx::testing::trace_of(lists);
    for (std::size_t i = 0; i < options.timing.compute_factors.size(); i += 3)
      options.timing.compute_factors[i] = kWholeLength * 17 / 10;
    options.timing.compute_factors.resize(trace.ranks.size());
    const ReplayResult result = timed(trace, kSlow, options);
    const Nanos end = to_nanos(*std::max_element(result.rank_end.begin(), result.rank_end.end()));
    Evidence evidence;
    evidence.trace = result.snapshot;
    const auto times = analyzers::break_down(evidence, analyzers::TimeSpan{0, end});
    for (const analyzers::RankTime& time : times) {
      const TimeShares& share = result.shares[time.record];
      const auto& parts = time.parts;
      // Times in the trace are rounded to nanoseconds, each by itself.
      const double slack =
          2.0 * static_cast<double>(result.snapshot.program(result.snapshot.ranks[time.record]).size());
      const auto near = [&](Nanos ours, Picos theirs, const char* what) {
        EXPECT_NEAR(static_cast<double>(ours), static_cast<double>(theirs) / kPicosPerNano, slack)
            << what << ", seed " << seed << ", rank " << time.record;
      };
      near(parts.compute + parts.overlapped, share.compute, "compute");
      near(parts.overlapped, share.overlapped, "overlapped");
      overlaps += share.overlapped > from_nanos(1'000) ? 1 : 0;
      near(parts.exposed, share.communication, "communication");
      near(parts.bubble, share.bubble, "bubble");
      near(parts.idle, share.idle, "idle");
      near(parts.unattributed, share.unattributed, "unattributed");
      EXPECT_EQ(parts.total(), end);
      bubbles += share.bubble > from_nanos(1'000) ? 1 : 0;
      waits += share.waiting > from_nanos(1'000) ? 1 : 0;
      EXPECT_LE(share.waiting, share.communication);
      EXPECT_EQ(share.total(), *std::max_element(result.rank_end.begin(), result.rank_end.end()));
    }
  }
  EXPECT_GT(bubbles, 20);
  EXPECT_GT(waits, 20);
  EXPECT_GT(overlaps, 20);
}

}  // namespace
}  // namespace ddx::sim
