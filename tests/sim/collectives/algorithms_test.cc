// Every algorithm of the registry in its two forms: closed form and steps, which were written apart and must agree to
// the picosecond; and what holds for any algorithm whatever it does.
#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/port_bound.h"
#include "sim/collectives/step_simulation.h"

namespace ddx::sim {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr LinkSpec kPort{50'000'000'000, 1'000'000};
constexpr std::uint32_t kRanks[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  12,  13, 15,
                                    16, 17, 24, 31, 32, 33, 48, 64, 96, 100, 127};

// Latency that decides, that hardly does, that is nothing; rates that divide nothing.
const std::vector<LinkSpec>& ports() {
  static const std::vector<LinkSpec> kPorts = {
      kPort, {1'000'000'007, 30'000'000}, {450'000'000'000, 0}, {12'499'999'999, 3'333'333'333}, {3000, 1}};
  return kPorts;
}

struct Case {
  const Algorithm* algorithm;
  Work work;
  std::uint32_t ranks;
  std::string text() const {
    return fmt::format("{} {} of {} bytes on {} ranks", algorithm->name, name_of(work.kind), work.bytes, ranks);
  }
};

std::vector<Case> cases(std::span<const std::uint32_t> ranks, const std::vector<std::uint64_t>& sizes) {
  std::vector<Case> all;
  for (const Algorithm& algorithm : algorithms()) {
    for (const OpKind kind : algorithm.kinds) {
      for (const std::uint32_t n : ranks) {
        if (!algorithm.runs(kind, flat_members(n))) continue;
        for (const std::uint64_t bytes : sizes) all.push_back({&algorithm, {kind, bytes}, n});
      }
    }
  }
  return all;
}

Picos simulated(const Case& each, const LinkSpec& port) {
  const std::vector<Picos> arrivals(each.ranks);
  const std::vector<Picos> ends = simulate_steps(*each.algorithm, each.work, arrivals, Network(each.ranks, port));
  return *std::max_element(ends.begin(), ends.end());
}

TEST(Algorithms, steps_take_what_the_closed_form_says_to_the_picosecond) {
  for (const LinkSpec& port : ports()) {
    const std::span<const std::uint32_t> all = kRanks;
    const auto ranks = &port == &ports().front() ? all : all.first(13);
    for (const Case& each : cases(ranks, {0, 1, 2, 1000, 4097, 262'144, 1'000'003})) {
      ASSERT_EQ(simulated(each, port), flat_price(each.work, each.ranks, port, *each.algorithm).total())
          << each.text() << " at " << port.bytes_per_second << " bytes a second, " << port.latency << " ps";
    }
  }
}

TEST(Algorithms, large_buffers_agree_too) {
  for (const Case& each : cases(std::array<std::uint32_t, 5>{2, 3, 8, 16, 24}, {64 * kMiB, 100'000'007})) {
    ASSERT_EQ(simulated(each, kPort), flat_price(each.work, each.ranks, kPort, *each.algorithm).total()) << each.text();
  }
}

// 2 (n - 1) (L + S / (n B)) worked out by hand at 50 GB/s and 1 us, in picoseconds; other simulators' closed form too.
TEST(Algorithms, ring_all_reduce_takes_the_known_times) {
  struct Known {
    std::uint32_t ranks;
    std::uint64_t bytes;
    Picos time;
  };
  constexpr Known kKnown[] = {
      {8, kMiB, 50'700'160},       {8, 64 * kMiB, 2'362'810'240},       {8, 1024 * kMiB, 37'594'963'840},
      {64, kMiB, 167'287'680},     {64, 64 * kMiB, 2'768'411'520},      {64, 1024 * kMiB, 42'404'584'320},
      {512, kMiB, 1'063'861'120},  {512, 64 * kMiB, 3'701'111'680},     {512, 1024 * kMiB, 43'887'786'880},
      {1024, kMiB, 2'087'902'080}, {1024, 64 * kMiB, 4'727'733'120},    {1024, 1024 * kMiB, 44'953'729'920},
      {4096, kMiB, 8'231'932'800}, {4096, 1024 * kMiB, 51'129'187'200},
  };
#ifdef NDEBUG
  constexpr std::uint32_t kMostSimulated = 4096;
#else
  constexpr std::uint32_t kMostSimulated = 512;
#endif
  const Algorithm& ring = *find_algorithm("ring");
  for (const Known& known : kKnown) {
    const Case each{&ring, {OpKind::all_reduce, known.bytes}, known.ranks};
    EXPECT_EQ(flat_price(each.work, each.ranks, kPort, ring).total(), known.time) << each.text();
    // 33.5 million messages take more than a second, and minutes under a sanitizer. The size changes nothing.
    if (known.ranks > kMostSimulated || (known.ranks > 512 && known.bytes != kMiB)) continue;
    EXPECT_EQ(simulated(each, kPort), known.time) << each.text();
  }
}

// 64 MiB a rank through a switch, 1 us to it and 1 us from it, worked out by hand; ASTRA-sim's analytical backend comes
// to 2,360.8, 2,666.4, 9,401.2, 84,569.2, 1,180.4 and 1,333.2 us (its all_gather counts what one rank gives).
TEST(Algorithms, halving_and_doubling_take_the_known_times) {
  constexpr LinkSpec kSwitched{50'000'000'000, 2'000'000};
  const auto time = [&](OpKind kind, std::uint32_t ranks, std::uint64_t bytes) {
    const Case each{find_algorithm("halving-doubling"), {kind, bytes}, ranks};
    EXPECT_EQ(simulated(each, kSwitched), flat_price(each.work, ranks, kSwitched, *each.algorithm).total());
    return simulated(each, kSwitched);
  };
  EXPECT_EQ(time(OpKind::all_reduce, 8, 64 * kMiB), 2'360'810'240);
  EXPECT_EQ(time(OpKind::all_reduce, 64, 64 * kMiB), 2'666'411'520);
  EXPECT_EQ(time(OpKind::all_gather, 8, 8 * 64 * kMiB), 9'401'240'960);
  EXPECT_EQ(time(OpKind::all_gather, 64, 64 * 64 * kMiB), 84'569'168'640);
  EXPECT_EQ(time(OpKind::reduce_scatter, 8, 64 * kMiB), 1'180'405'120);
  EXPECT_EQ(time(OpKind::reduce_scatter, 64, 64 * kMiB), 1'333'205'760);
}

// What is sent is what is awaited, step by step; and the closed form of the bytes.
TEST(Algorithms, every_message_is_received_in_the_step_that_it_names) {
  for (const Case& each : cases(kRanks, {0, 1000, 3 * kMiB + 1})) {
    const Members members = flat_members(each.ranks);
    const auto schedule = each.algorithm->schedule(each.work, members);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> open;
    std::vector<std::uint64_t> sent(each.ranks);
    for (std::uint32_t agent = 0; agent < schedule->agents(); ++agent) {
      for (std::uint32_t index = 0; index < schedule->steps(agent); ++index) {
        Step step;
        schedule->step(agent, index, step);
        open[{agent, index}] -= step.receives;
        for (const Send& send : step.sends) {
          ASSERT_LT(send.to_step, schedule->steps(send.to)) << each.text();
          ++open[{send.to, send.to_step}];
          if (schedule->member_of(agent) < each.ranks) sent[schedule->member_of(agent)] += send.bytes;
        }
      }
    }
    for (const auto& [place, balance] : open) ASSERT_EQ(balance, 0) << each.text() << ", agent " << place.first;
    ASSERT_EQ(*std::max_element(sent.begin(), sent.end()), each.algorithm->bytes_sent(each.work, members))
        << each.text();
  }
}

// Who needs what some rank has cannot be done before that rank has come.
TEST(Algorithms, nobody_is_done_before_the_last_one_whose_data_it_needs) {
  constexpr Picos kLate = 1'000'000'000'000;
  for (const Case& each : cases(std::array<std::uint32_t, 9>{2, 3, 4, 5, 7, 8, 12, 16, 24}, {0, 1000, 262'144})) {
    const OpKind kind = each.work.kind;
    const Network network(each.ranks, kPort);
    for (std::uint32_t late = 0; late < each.ranks; ++late) {
      std::vector<Picos> arrivals(each.ranks);
      arrivals[late] = kLate;
      const auto ends = simulate_steps(*each.algorithm, each.work, arrivals, network);
      const auto from_root = kind == OpKind::broadcast || kind == OpKind::scatter || is_p2p(kind);
      const auto to_root = kind == OpKind::reduce || kind == OpKind::gather;
      for (std::uint32_t rank = 0; rank < each.ranks; ++rank) {
        const bool needs = rank == late || (from_root ? late == 0 : !to_root || rank == 0);
        ASSERT_TRUE(!needs || ends[rank] >= kLate) << each.text() << ": rank " << rank << " without " << late;
      }
      // And not much later: the late one does not pay for the rest twice over.
      const Picos alone = simulated(each, kPort);
      ASSERT_LE(*std::max_element(ends.begin(), ends.end()), kLate + 2 * alone) << each.text();
    }
  }
}

TEST(Algorithms, none_is_faster_than_the_ports_allow) {
  for (const LinkSpec& port : ports()) {
    for (const Case& each : cases(kRanks, {0, 1, 1000, 4097, 262'144, 64 * kMiB, 100'000'007})) {
      const Price price = flat_price(each.work, each.ranks, port, *each.algorithm);
      const Picos bound = port_bound(each.work, each.ranks, port.bytes_per_second, *each.algorithm);
      const auto schedule = each.algorithm->schedule(each.work, flat_members(each.ranks));
      const Picos rounding = schedule->agents() == 0 ? 0 : schedule->steps(0) + 1;
      ASSERT_GE(price.transfer + rounding, bound) << each.text();
    }
  }
}

TEST(Algorithms, port_bounds_are_those_of_the_textbook) {
  // 1,000 bytes at 1 byte a picosecond, 4 ranks.
  constexpr std::uint64_t kRate = kPicosPerSecond;
  const auto bound = [](OpKind kind) { return port_bound({kind, 1000}, 4, kRate); };
  EXPECT_EQ(bound(OpKind::all_reduce), 1500);
  EXPECT_EQ(bound(OpKind::reduce_scatter), 750);
  EXPECT_EQ(bound(OpKind::all_gather), 750);
  EXPECT_EQ(bound(OpKind::all_to_all), 750);
  EXPECT_EQ(bound(OpKind::gather), 750);
  EXPECT_EQ(bound(OpKind::scatter), 750);
  EXPECT_EQ(bound(OpKind::broadcast), 1000);
  EXPECT_EQ(bound(OpKind::reduce), 1000);
  EXPECT_EQ(bound(OpKind::barrier), 0);
  EXPECT_EQ(port_bound_with_switches({OpKind::all_reduce, 1000}, 4, kRate), 1000);
  EXPECT_EQ(port_bound_with_switches({OpKind::all_gather, 1000}, 4, kRate), 750);
  EXPECT_EQ(port_bound({OpKind::all_reduce, 1000}, 1, kRate), 0);
  EXPECT_EQ(port_bound({OpKind::broadcast, ~std::uint64_t{0}}, 2, 1), kForever);
}

// Textbook times (docs/algorithms.md), worked out by hand: 8 ranks, 8,000 bytes, 1 byte a picosecond, L = 100.
TEST(Algorithms, small_examples_by_hand) {
  constexpr LinkSpec kUnit{kPicosPerSecond, 100};
  const auto time = [&](std::string_view name, OpKind kind, std::uint32_t ranks, std::uint64_t bytes) {
    return flat_price({kind, bytes}, ranks, kUnit, *find_algorithm(name)).total();
  };
  EXPECT_EQ(time("ring", OpKind::all_reduce, 8, 8000), 14 * (100 + 1000));
  EXPECT_EQ(time("halving-doubling", OpKind::all_reduce, 8, 8000), 2 * (300 + 7000));
  EXPECT_EQ(time("recursive-doubling", OpKind::all_reduce, 8, 8000), 3 * (100 + 8000));
  EXPECT_EQ(time("recursive-doubling", OpKind::all_reduce, 7, 8000), (2 + 2) * (100 + 8000));
  EXPECT_EQ(time("rabenseifner", OpKind::all_reduce, 8, 8000), 2 * (300 + 7000));
  EXPECT_EQ(time("rabenseifner", OpKind::all_reduce, 6, 8000), 2 * (200 + 6000) + 2 * (100 + 8000));
  EXPECT_EQ(time("binomial", OpKind::broadcast, 8, 8000), 3 * (100 + 8000));
  // Rank 4 has it last, from rank 0 straight, but rank 3 over two hops only with long latencies.
  EXPECT_EQ(time("binomial", OpKind::broadcast, 5, 8000), 3 * 8000 + 100);
  EXPECT_EQ(time("binomial", OpKind::broadcast, 5, 10), 2 * 10 + 2 * 100);
  EXPECT_EQ(time("binomial", OpKind::reduce, 5, 8000), 3 * (100 + 8000));
  EXPECT_EQ(time("pairwise", OpKind::all_to_all, 8, 8000), 7 * (100 + 1000));
  EXPECT_EQ(time("bruck", OpKind::all_to_all, 8, 8000), 3 * (100 + 4000));
  EXPECT_EQ(time("bruck", OpKind::all_to_all, 5, 5000), (100 + 2000) + (100 + 2000) + (100 + 1000));
  EXPECT_EQ(time("bruck", OpKind::all_gather, 5, 5000), 300 + 1000 + 2000 + 1000);
  EXPECT_EQ(time("pat", OpKind::all_gather, 5, 5000), 300 + 1000 + 1000 + 2000);
  EXPECT_EQ(time("linear", OpKind::gather, 5, 5000), 100 + 4000);
  EXPECT_EQ(time("dissemination", OpKind::barrier, 5, 0), 300);
  EXPECT_EQ(time("p2p", OpKind::send, 2, 77), 177);
  // One segment for each of two halves: 4 (n - 1) messages of S / 2n; latency is hidden, 14 segments a phase.
  EXPECT_EQ(time("gloo-ring", OpKind::all_reduce, 8, 8000), 2 * (14 * 500 + 100));
  // Latency is not: two segments a 100 + 5.
  EXPECT_EQ(time("gloo-ring", OpKind::all_reduce, 8, 80), 2 * (6 * 105 + 5 + 105));
  EXPECT_EQ(time("bcube", OpKind::all_reduce, 6, 6000), 2 * (100 + 3000) + 2 * (100 + 2000));
  EXPECT_EQ(time("bcube", OpKind::all_reduce, 5, 5000), 2 * (100 + 4000));
  // Four messages at a time through a port, up and down three levels, one chunk of 4,000 a tree.
  EXPECT_EQ(time("tree", OpKind::all_reduce, 8, 8000), 6 * (100 + 16'000));
  EXPECT_EQ(time("nvls", OpKind::all_reduce, 8, 8000), 4 * (100 + 9000));
  EXPECT_EQ(time("collnet-direct", OpKind::all_reduce, 16, 8000), 4 * (100 + 15'000));
  EXPECT_EQ(time("collnet-chain", OpKind::all_reduce, 16, 8000), 16 * (100 + 16'000));
  EXPECT_EQ(time("nvlstree", OpKind::all_reduce, 16, 8000), 6 * (100 + 10'000));
}

TEST(Algorithms, hostile_numbers_saturate) {
  for (const Case& each : cases(std::array<std::uint32_t, 4>{2, 3, 8, 4096}, {~std::uint64_t{0}})) {
    const Price price = flat_price(each.work, each.ranks, {1, kForever}, *each.algorithm);
    EXPECT_GE(price.latency, 0) << each.text();
    EXPECT_GE(price.transfer, 0) << each.text();
    EXPECT_EQ(price.total(), kForever) << each.text();
  }
}

// Rows of the first table of docs/algorithms.md: name -> kinds.
std::map<std::string, std::set<std::string>> documented() {
  std::map<std::string, std::set<std::string>> rows;
  std::ifstream file(DDX_SOURCE_DIR "/docs/algorithms.md");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    std::istringstream cut(line.substr(1));
    for (std::string cell; std::getline(cut, cell, '|');) cells.push_back(cell);
    EXPECT_EQ(cells.size(), 7U) << line;
    const auto bare = [](std::string text) {
      std::erase_if(text, [](char c) { return c == '`' || c == ' '; });
      return text;
    };
    std::istringstream kinds(bare(cells[1]));
    for (std::string kind; std::getline(kinds, kind, ',');) rows[bare(cells[0])].insert(kind);
    for (const std::string& cell : cells) EXPECT_FALSE(bare(cell).empty()) << line;
  }
  return rows;
}

TEST(Algorithms, each_has_a_row_in_the_documentation) {
  std::map<std::string, std::set<std::string>> registered;
  for (const Algorithm& algorithm : algorithms()) {
    for (const OpKind kind : algorithm.kinds)
      registered[std::string(algorithm.name)].insert(std::string(name_of(kind)));
  }
  EXPECT_EQ(documented(), registered);
}

TEST(Algorithms, are_found_by_name_and_by_kind) {
  std::set<std::string_view> names;
  for (const Algorithm& algorithm : algorithms()) {
    EXPECT_TRUE(names.insert(algorithm.name).second) << algorithm.name;
    EXPECT_EQ(find_algorithm(algorithm.name), &algorithm);
    EXPECT_EQ(algorithm.price({algorithm.kinds.front(), 1}, {2, 2, true}, kPort).algorithm, algorithm.name);
    for (const OpKind kind : algorithm.kinds) {
      const auto found = algorithms_for(kind);
      EXPECT_NE(std::find(found.begin(), found.end(), &algorithm), found.end());
    }
  }
  EXPECT_EQ(find_algorithm("no such thing"), nullptr);
  EXPECT_TRUE(algorithms_for(OpKind::compute).empty());
}

}  // namespace
}  // namespace ddx::sim
