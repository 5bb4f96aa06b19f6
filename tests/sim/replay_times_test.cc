// Times of a replay: closed forms, sharing worked out by hand, and properties.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "sim/network/rate.h"
#include "sim/replay/flat_costs.h"
#include "sim/replay/recorded_programs.h"
#include "sim/replay/reference_replay.h"
#include "tests/support/ops_text.h"
#include "tests/support/random_program.h"

namespace ddx::sim {
namespace {

using ddx::testing::trace_of;

struct Timed {
  ReplayResult result;
  std::vector<Nanos> ends;  // by rank
  Nanos end = 0;
};

Timed timed(const Trace& trace, const std::string& algorithm, const LinkSpec& port, ReplayOptions options = {}) {
  FlatOptions flat;
  flat.port = port;
  flat.algorithm = find_algorithm(algorithm);
  const auto costs = flat_costs(flat);
  options.timing.costs = costs.get();
  Timed timed;
  timed.result = replay(trace, options);
  for (const Picos end : timed.result.rank_end) timed.ends.push_back(to_nanos(end));
  for (const Nanos end : timed.ends) timed.end = std::max(timed.end, end);
  return timed;
}

// 1 GB/s, 1 us: a kilobyte (of 1,000) takes a microsecond.
constexpr LinkSpec kSlow{1'000'000'000, 1'000'000};
constexpr LinkSpec kFast{50'000'000'000, 1'000'000};

Timed on_slow(const std::string& text, const ReplayOptions& options = {}) {
  return timed(trace_of(text), "ring", kSlow, options);
}

// One ring all_reduce on links of 50 GB/s and 1 us: 2(n-1)(L + S/(n B)), as four other simulators give it too.
TEST(ReplayTimes, ring_all_reduces) {
  struct Row {
    int ranks;
    std::uint64_t mib;
    Nanos expected;
  };
  for (const Row& row :
       {Row{8, 1, 50'700}, Row{8, 64, 2'362'810}, Row{8, 1024, 37'594'964}, Row{64, 1, 167'288}, Row{64, 64, 2'768'412},
        Row{64, 1024, 42'404'584}, Row{512, 1, 1'063'861}, Row{512, 64, 3'701'112}, Row{512, 1024, 43'887'787},
        Row{1024, 1, 2'087'902}, Row{1024, 64, 4'727'733}, Row{1024, 1024, 44'953'730}, Row{4096, 1, 8'231'933},
        Row{4096, 1024, 51'129'187}}) {
    const auto text = fmt::format("world {}\nall all_reduce f32 {}\n", row.ranks, row.mib << 18);
    EXPECT_EQ(timed(trace_of(text), "ring", kFast).end, row.expected) << text;
  }
}

// 20 steps: 1 ms forward; 50 times 1 ms backward and a 25 MiB all_reduce beside the next ones; the step waits for all.
std::string training(int ranks) {
  return fmt::format(
      "world {}\nrepeat 20\nall compute 1ms\nrepeat 50\nall compute 1ms\nall all_reduce f32 6553600 async\nend\n"
      "all host_sync\nend\n",
      ranks);
}

TEST(ReplayTimes, all_reduces_beside_computation) {
  EXPECT_EQ(timed(trace_of(training(8)), "ring", kFast).end, 1'038'630'080);
  EXPECT_EQ(timed(trace_of(training(64)), "ring", kFast).end, 1'198'192'000);
  EXPECT_EQ(timed(trace_of(training(1024)), "ring", kFast).end, 3'133'552'000);
  EXPECT_EQ(timed(trace_of(training(1024)), "halving-doubling", {50'000'000'000, 2'000'000}).end, 1'127'552'000);
}

TEST(ReplayTimes, a_late_rank_makes_the_others_wait) {
  const Timed run = on_slow(
      "world 3\n"
      "0 compute 5us\n1 compute 2us\n"
      "all barrier\n"
      "2 compute 1us\n");
  // The barrier of three ranks takes two steps of 1 us.
  EXPECT_EQ(run.ends, (std::vector<Nanos>{7'000, 7'000, 8'000}));
  const Program& waits = run.result.snapshot.program(run.result.snapshot.ranks[2]);
  EXPECT_EQ(waits.start(0), 0);
  EXPECT_EQ(waits.end(0), 7'000);
}

TEST(ReplayTimes, a_send_waits_for_its_receive_unless_it_is_eager) {
  const std::string text =
      "world 2\n"
      "0 send i8 1000 to 1\n"
      "1 compute 10us\n1 recv i8 1000 from 0\n";
  EXPECT_EQ(on_slow(text).ends, (std::vector<Nanos>{12'000, 12'000}));
  ReplayOptions eager;
  eager.eager_up_to = 1000;
  EXPECT_EQ(on_slow(text, eager).ends, (std::vector<Nanos>{0, 10'000}));
  eager.eager_up_to = 999;
  EXPECT_EQ(on_slow(text, eager).ends, (std::vector<Nanos>{12'000, 12'000}));
}

// Two collectives of two groups of the same two ranks: 2(n-1) = 2 steps, of 1 us latency and 1 us for 1,000 of 2,000
// bytes each, so 2 us of transfer and 2 us of latency alone.
TEST(ReplayTimes, collectives_at_one_time_share_the_ports) {
  const std::string groups = "world 2\npg a = 0,1\npg b = 0,1\n";
  EXPECT_EQ(on_slow(groups + "all all_reduce i8 2000 a\n").end, 4'000);
  EXPECT_EQ(on_slow(groups + "all all_reduce i8 2000 a async\nall all_reduce i8 2000 b async\nall host_sync\n").end,
            4'000 + 2'000);
  // The second comes when the first is half through: that one ends after 1 + 2, the second after 1 + 2 + 1 us of
  // transfer, each with its latency.
  const Timed later = on_slow(groups +
                              "all all_reduce i8 2000 a async=first\nall compute 1us\n"
                              "all all_reduce i8 2000 b async=second\nall wait first\nall wait second\n");
  const Program& rows = later.result.snapshot.program(later.result.snapshot.ranks[0]);
  EXPECT_EQ(rows.end(0), 3'000 + 2'000);
  EXPECT_EQ(rows.end(2), 4'000 + 2'000);
  EXPECT_EQ(rows.end(3), 5'000);
  // On one stream nothing is shared.
  EXPECT_EQ(on_slow(groups + "all all_reduce i8 2000 a async stream=1\nall all_reduce i8 2000 b async stream=1\n"
                             "all host_sync\n")
                .end,
            8'000);
}

TEST(ReplayTimes, messages_to_one_rank_share_its_port) {
  EXPECT_EQ(on_slow("world 4\n"
                    "1-3 send i8 1000 to 0\n"
                    "0 group_begin\n0 recv i8 1000 from 1\n0 recv i8 1000 from 2\n0 recv i8 1000 from 3\n0 group_end\n")
                .end,
            3'000 + 1'000);
  // What another rank sends meanwhile to somebody else is not held up.
  const Timed beside = on_slow(
      "world 5\n"
      "1,2 send i8 1000 to 0\n"
      "0 group_begin\n0 recv i8 1000 from 1\n0 recv i8 1000 from 2\n0 group_end\n"
      "3 send i8 1000 to 4\n4 recv i8 1000 from 3\n");
  EXPECT_EQ(beside.ends, (std::vector<Nanos>{3'000, 3'000, 3'000, 2'000, 2'000}));
}

// Chains of 64 chunks of 512 KiB, each of which takes t = 524.288 us. From rank 0 over rank 1 to rank 2: 65 t, in which
// each port that it takes is busy for 64.
TEST(ReplayTimes, chains_load_ports_by_place) {
  constexpr Nanos kChunk = 524'288;
  constexpr LinkSpec kIdeal{1'000'000'000, 0};
  const std::string chain = "all broadcast u8 33554432 a root=0 async stream=1\n";
  const auto ends = [&](const std::string& beside) {
    const std::string text = "world 4\npg a = 0,1,2\npg b = 1,3\npg c = 2,3\n0-2" + chain.substr(3) + beside;
    return timed(trace_of(text), "ring", kIdeal).ends;
  };
  EXPECT_EQ(ends("").at(2), 65 * kChunk);
  // The last one sends nothing, so that what it sends elsewhere is not in the way.
  EXPECT_EQ(ends("2,3 broadcast u8 33554432 c root=2 async stream=2\n"),
            (std::vector<Nanos>{65 * kChunk, 65 * kChunk, 65 * kChunk, 64 * kChunk}));
  // Rank 1 passes it on, at 64/65 of its port, beside the 64 t that it sends to rank 3: both go at 65/129 of their
  // speed until these are over after 64 * 129/65 t, and the chain has one t left.
  const auto shared = ends("1,3 broadcast u8 33554432 b root=1 async stream=2\n");
  EXPECT_NEAR(static_cast<double>(shared.at(3)), 64 * 129. / 65 * kChunk, 2e3);
  EXPECT_NEAR(static_cast<double>(shared.at(0)), (64 * 129. / 65 + 1) * kChunk, 2e3);
  // A reduce goes the other way: rank 1 gets what comes from rank 2 beside what rank 3 sends it; rank 2 gets nothing.
  const std::string back = "all reduce u8 33554432 a root=0 async stream=1\n";
  const auto reduced = [&](const std::string& beside) {
    const std::string text = "world 4\npg a = 0,1,2\npg b = 1,3\npg c = 2,3\n0-2" + back.substr(3) + beside;
    return timed(trace_of(text), "ring", kIdeal).ends;
  };
  EXPECT_EQ(reduced("2,3 reduce u8 33554432 c root=2 async stream=2\n").at(3), 64 * kChunk);
  EXPECT_NEAR(static_cast<double>(reduced("1,3 reduce u8 33554432 b root=1 async stream=2\n").at(3)),
              64 * 129. / 65 * kChunk, 2e3);
}

TEST(ReplayTimes, everybody_sends_to_everybody) {
  const int ranks = 7;
  std::string text = fmt::format("world {}\nall group_begin\n", ranks);
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (from != to) text += fmt::format("{} send i8 1000 to {}\n{} recv i8 1000 from {}\n", from, to, to, from);
    }
  }
  EXPECT_EQ(on_slow(text + "all group_end\n").end, 6'000 + 1'000);
}

TEST(ReplayTimes, computations_scale_by_rank) {
  ReplayOptions options;
  options.timing.compute_factors = {kWholeLength, kWholeLength * 5 / 2};
  EXPECT_EQ(on_slow("world 2\nall compute 4us\n", options).ends, (std::vector<Nanos>{4'000, 10'000}));
}

TEST(ReplayTimes, what_has_no_size_has_no_price) {
  const Timed run = on_slow("world 2\nall all_reduce f32 ?\n");
  EXPECT_EQ(run.result.outcome, ReplayResult::Outcome::refused);
  EXPECT_EQ(run.result.reason, "all_reduce 1 of rank 0 cannot be priced: its count or type is not known");
}

// Whoever comes first, and whatever the ranks are called: the price is that of the busiest port.
TEST(ReplayTimes, what_unlike_calls_cost_does_not_depend_on_who_comes_first) {
  // Rank a sends b a byte, b sends a 1,000,000: a millisecond over b's port, and the latency.
  const auto uneven = [](int a, int b) {
    return fmt::format(
        "world 2\n{} all_to_all u8 2 in_splits={} out_splits={}\n{} all_to_all u8 1000001 in_splits={} "
        "out_splits={}\n",
        a, "1,1", a == 0 ? "1,1000000" : "1000000,1", b, b == 1 ? "1000000,1" : "1,1000000", "1,1");
  };
  EXPECT_EQ(on_slow(uneven(0, 1)).end, 1'001'000);
  EXPECT_EQ(on_slow(uneven(1, 0)).end, 1'001'000);
  // All to one: 3 x 1,000 bytes into the port of rank 3, and every rank has the same list.
  EXPECT_EQ(on_slow("world 4\nall all_to_all u8 1000 in_splits=0,0,0,1000\n").end, 3'000 + 3'000);
  for (const int knows : {0, 1}) {
    const auto text = fmt::format("world 2\n{} all_reduce f32 1024\n{} all_reduce f32 ?\n", knows, 1 - knows);
    EXPECT_EQ(on_slow(text).end, 2 * (1'000 + 2'048)) << text;
  }
}

TEST(ReplayTimes, what_takes_longer_than_can_be_counted_is_refused) {
  constexpr LinkSpec kCrawling{1, 0};
  for (const auto* text : {"world 2\nall all_reduce f32 4000000000000000000\n",
                           "world 2\nall compute 9000000s\nall "
                           "compute 9000000s\nall barrier\n",
                           "world 2\n0 send f32 4000000000000000000 to 1\n1 recv "
                           "f32 4000000000000000000 from 0\n",
                           "world 2\nrepeat 3\nall compute 4000000s stream=7\nend\n"}) {
    for (const LinkSpec& port : {kCrawling, kSlow, LinkSpec{1, 1'000'000}}) {
      const Timed run = timed(trace_of(text), "ring", port);
      EXPECT_EQ(run.result.outcome, ReplayResult::Outcome::refused) << text;
      EXPECT_EQ(run.result.reason, "it takes more than 106 days, longer than can be timed") << text;
    }
  }
}

// The host computes, waits and syncs in a group as out of it; what it posts there starts at the group's end.
TEST(ReplayTimes, the_host_takes_its_time_in_a_group) {
  const std::string receives = "1 recv u8 1000 from 0\n";
  EXPECT_EQ(on_slow("world 2\n0 group_begin\n0 send u8 1000 to 1\n0 compute 5ms\n0 group_end\n" + receives).end,
            5'000'000 + 2'000);
  EXPECT_EQ(on_slow("world 2\n0 all_reduce u8 2000 async\n0 group_begin\n0 wait 0\n0 compute 1ms\n0 send u8 1000 to "
                    "1\n0 group_end\n1 compute 3ms\n1 all_reduce u8 2000\n" +
                    receives)
                .end,
            3'000'000 + 4'000 + 1'000'000 + 2'000);
  EXPECT_EQ(on_slow("world 2\n0 compute 2ms stream=5\n0 group_begin\n0 host_sync\n0 send u8 1000 to 1\n0 group_end\n" +
                    receives)
                .end,
            2'000'000 + 2'000);
  // For a part of the group itself, its end waits.
  EXPECT_EQ(on_slow("world 2\n0 group_begin\n0 send u8 1000 to 1 async\n0 wait 0\n0 group_end\n" + receives).end,
            2'000);
}

// Rank 0 is at its group's end from 1 ms on; the other comes at 3 ms and both then exchange a megabyte.
TEST(ReplayTimes, a_group_ends_when_its_host_goes_on) {
  const Timed timed = on_slow(
      "world 2\n0 compute 1ms\n1 compute 3ms\nall group_begin\n0 send u8 1000000 to 1\n0 recv u8 1000000 from 1\n"
      "1 send u8 1000000 to 0\n1 recv u8 1000000 from 0\nall group_end\nall compute 1ms\n");
  const Trace& trace = timed.result.snapshot;
  const Program& program = trace.program(trace.ranks[0]);
  ASSERT_EQ(trace.signature(program.signature(4)).kind, OpKind::group_end);
  EXPECT_EQ(program.start(4), 1'000'000);
  EXPECT_EQ(program.end(4), 3'000'000 + 1'000 + 1'000'000);
  EXPECT_EQ(program.start(5), 3'000'000 + 1'000 + 1'000'000);
  EXPECT_EQ(timed.end, 3'000'000 + 1'000 + 1'000'000 + 1'000'000);
}

TEST(ReplayTimes, nothing_ends_before_it_begins) {
  std::size_t grouped = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    ddx::testing::ProgramOptions program;
    program.seed = seed;
    ReplayOptions options;
    options.stream_ordered = seed % 2 == 0;
    const Trace trace = timed(trace_of(random_program(program)), "", kSlow, options).result.snapshot;
    for (const RankRecord& record : trace.ranks) {
      const Program& ops = trace.program(record);
      for (std::size_t row = 0; row < ops.size(); ++row) {
        const OpKind kind = trace.signature(ops.signature(row)).kind;
        if (kind == OpKind::group_end) ++grouped;
        ASSERT_TRUE(ops.end(row)) << "seed " << seed << " row " << row;
        EXPECT_LE(ops.start(row).value_or(*ops.end(row)), *ops.end(row)) << "seed " << seed << " row " << row;
        EXPECT_LE(ops.issue(row).value_or(*ops.end(row)), *ops.end(row)) << "seed " << seed << " row " << row;
      }
    }
  }
  EXPECT_GT(grouped, 0u);
}

TEST(ReplayTimes, do_not_depend_on_the_order_of_visits_or_on_folding) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    ddx::testing::ProgramOptions program;
    program.seed = seed;
    const Trace trace = trace_of(random_program(program));
    ReplayOptions options;
    options.stream_ordered = seed % 2 == 0;
    options.max_ahead = seed % 3 == 0 ? 2 : 1024;
    for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
      options.timing.compute_factors.push_back(seed % 4 == 0 ? kWholeLength + i % 3 * kWholeLength / 10 : kWholeLength);
    }
    const Timed in_order = timed(trace, "", kSlow, options);
    ASSERT_EQ(in_order.result.outcome, ReplayResult::Outcome::completes) << "seed " << seed << in_order.result.reason;
    for (std::uint64_t visits = 1; visits <= 3; ++visits) {
      options.visit_seed = visits;
      options.fold = visits != 2;
      const Timed other = timed(trace, "", kSlow, options);
      EXPECT_EQ(other.ends, in_order.ends) << "seed " << seed;
      EXPECT_EQ(ddx::testing::text_of(other.result.snapshot), ddx::testing::text_of(in_order.result.snapshot));
    }
    EXPECT_GT(in_order.end, 0) << "seed " << seed << ": nothing of it was timed";
  }
}

// How long such a call takes on `ranks` ranks that come at once and do nothing else.
Nanos alone(const Signature& call, std::size_t ranks) {
  std::string text = fmt::format("world {}\nall {}", ranks, name_of(call.kind));
  if (call.kind != OpKind::barrier) text += fmt::format(" {} {}", name_of(call.type_in), *call.count_in);
  if (is_rooted(call.kind)) text += " root=0";
  return timed(trace_of(text + "\n"), "", kSlow).end;
}

// No call ends before all that take part have come, nor sooner than it takes alone.
TEST(ReplayTimes, nobody_is_served_before_all_are_there) {
  struct Call {
    SignatureId signature;
    std::size_t ranks = 0, seen = 0;
    Nanos last_start = 0, first_end = INT64_MAX;
  };
  std::size_t waited = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    ddx::testing::ProgramOptions program;
    program.seed = seed;
    program.world = 2 + static_cast<int>(seed % 15);
    const Timed run = timed(trace_of(random_program(program)), "", kSlow);
    const Trace& trace = run.result.snapshot;
    std::map<std::pair<CommId, std::uint32_t>, Call> calls;
    for (const RankRecord& record : trace.ranks) {
      const Program& rows = trace.program(record);
      for (std::size_t row = 0; row < rows.size(); ++row) {
        if (!is_collective(trace.signature(rows.signature(row)).kind)) continue;
        const CommId comm = record.comms[*rows.comm_slot(row)];
        Call& call = calls[{comm, *rows.seq(row)}];
        if (call.seen > 0 && *rows.start(row) != call.last_start) ++waited;
        call.signature = rows.signature(row);
        call.ranks = trace.communicator(comm).members.size();
        ++call.seen;
        call.last_start = std::max(call.last_start, *rows.start(row));
        call.first_end = std::min(call.first_end, *rows.end(row));
      }
    }
    std::map<std::pair<SignatureId, std::size_t>, Nanos> known;
    for (const auto& [key, call] : calls) {
      EXPECT_EQ(call.seen, call.ranks) << "seed " << seed;
      const auto [at, fresh] = known.try_emplace({call.signature, call.ranks});
      if (fresh) at->second = alone(trace.signature(call.signature), call.ranks);
      // Both are rounded to a nanosecond.
      EXPECT_GE(call.first_end - call.last_start + 1, at->second)
          << "seed " << seed << ": " << name_of(trace.signature(call.signature).kind);
    }
  }
  EXPECT_GT(waited, 1000U);
}

TEST(ReplayTimes, a_rank_of_no_network_is_refused) {
  Trace trace = trace_of("world 2\nall barrier\n");
  trace.ranks[1].rank = RankId(std::int64_t{2'000'000'000});
  EXPECT_EQ(timed(trace, "ring", kSlow).result.reason, "rank 2000000000 is on no network: expected 0 to 1048575");
}

// By rank: its collectives in order of their starts.
std::vector<std::vector<std::pair<CommId, std::uint32_t>>> order_of_calls(const Trace& trace) {
  std::vector<std::vector<std::pair<CommId, std::uint32_t>>> orders;
  for (const RankRecord& record : trace.ranks) {
    std::vector<std::pair<Nanos, std::pair<CommId, std::uint32_t>>> calls;
    const Program& rows = trace.program(record);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (!is_collective(trace.signature(rows.signature(row)).kind)) continue;
      calls.push_back({*rows.start(row), {record.comms[*rows.comm_slot(row)], *rows.seq(row)}});
    }
    std::stable_sort(calls.begin(), calls.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    auto& order = orders.emplace_back();
    for (const auto& [start, call] : calls) order.push_back(call);
  }
  return orders;
}

// A predicted trace is a recorded one: run again where nothing takes time but the computations that it holds, its calls
// come in the order in which they were recorded.
TEST(ReplayTimes, a_predicted_trace_fed_back_keeps_its_order) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    ddx::testing::ProgramOptions program;
    program.seed = seed;
    const Timed first = timed(trace_of(random_program(program)), "", kSlow);
    Trace again = first.result.snapshot;
    for (RankRecord& record : again.ranks) record.whole_program = false;
    take_recorded(again);
    const Timed second = timed(again, "", {kMostRate, 0});
    ASSERT_EQ(second.result.outcome, ReplayResult::Outcome::completes)
        << "seed " << seed << ": " << second.result.reason;
    EXPECT_EQ(order_of_calls(second.result.snapshot), order_of_calls(first.result.snapshot)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace ddx::sim
