// Rings of sends and receives, by chance blocking or not, on several streams: a program written out beside the replay
// (the oracle) says whether all of it ends, and who waits for whom where it does not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "analyzers/analyzer.h"
#include "sim/replay/reference_replay.h"
#include "tests/support/cut.h"
#include "tests/support/ops_text.h"
#include "tests/support/random_program.h"
#include "tests/support/told.h"

namespace ddx {
namespace {

using testing::draw;
using testing::told;

struct RingOp {
  enum class Kind { send, recv, wait, sync, barrier } kind = Kind::barrier;
  bool async = false;
  int stream = 0;      // 0: the communicator's own
  int waits_for = -1;  // of a wait: index in the list
  bool streamed() const { return kind != Kind::wait && kind != Kind::sync; }
};
using Ring = std::vector<std::vector<RingOp>>;  // by rank

// In each round every rank sends to the next and receives from the one before, in any order.
Ring random_ring(std::mt19937_64& random) {
  const std::size_t world = 2 + draw(random, 15);
  const int rounds = 1 + static_cast<int>(draw(random, 3)), streams = 1 + static_cast<int>(draw(random, 3));
  const std::uint64_t alike = draw(random, 2);  // most rings in the field: all ranks do the same
  const bool barrier_at_end = draw(random, 2) == 0;
  Ring ring(world);
  std::uint64_t seed = random();
  for (auto& list : ring) {
    if (alike == 0 || draw(random, 16) == 0) seed = random();
    std::mt19937_64 own(seed);
    for (int round = 0; round < rounds; ++round) {
      const bool send_first = draw(own, 3) != 0;
      for (const bool first : {true, false}) {
        RingOp op;
        op.kind = first == send_first ? RingOp::Kind::send : RingOp::Kind::recv;
        op.async = draw(own, 2) == 0;
        op.stream = static_cast<int>(draw(own, static_cast<std::uint64_t>(streams)));
        list.push_back(op);
        const std::uint64_t joins = draw(own, 6);
        if (joins == 0) list.push_back({RingOp::Kind::sync});
        if (joins == 1 && op.async) {
          list.push_back({RingOp::Kind::wait, false, 0, static_cast<int>(list.size()) - 1});
        }
      }
    }
    if (barrier_at_end) list.push_back({RingOp::Kind::barrier});
  }
  return ring;
}

std::string ops_of(const Ring& ring) {
  std::string text = fmt::format("world {}\n", ring.size());
  for (std::size_t rank = 0; rank < ring.size(); ++rank) {
    for (std::size_t i = 0; i < ring[rank].size(); ++i) {
      const RingOp& op = ring[rank][i];
      text += fmt::format("{} ", rank);
      switch (op.kind) {
        case RingOp::Kind::send: text += fmt::format("send f32 64 to {}", (rank + 1) % ring.size()); break;
        case RingOp::Kind::recv:
          text += fmt::format("recv f32 64 from {}", (rank + ring.size() - 1) % ring.size());
          break;
        case RingOp::Kind::wait: text += fmt::format("wait h{}", op.waits_for); break;
        case RingOp::Kind::sync: text += "host_sync"; break;
        case RingOp::Kind::barrier: text += "barrier"; break;
      }
      if (op.async) text += fmt::format(" async=h{}", i);
      if (op.stream > 0) text += fmt::format(" stream={}", op.stream);
      text += '\n';
    }
  }
  return text;
}

// Runs a ring by trying everything until nothing moves, then follows every wait.
class RingOracle {
 public:
  RingOracle(const Ring& ring, bool all_return_at_once) : ring_(ring), at_once_(all_return_at_once) {
    host_.assign(ring.size(), 0);
    for (const auto& list : ring) over_.emplace_back(list.size(), false);
    while (step()) {
    }
  }

  bool completes() const {
    for (std::size_t rank = 0; rank < ring_.size(); ++rank) {
      if (host_[rank] < ring_[rank].size() || !open(rank).empty()) return false;
    }
    return true;
  }

  // Ranks of each set of things that all wait for each other. Two of the same ranks are told once.
  std::set<std::set<int>> circles() const {
    std::map<Node, std::set<Node>> reach;
    for (std::size_t rank = 0; rank < ring_.size(); ++rank) {
      std::vector<Node> left{{rank, kHost}};
      for (const std::size_t i : open(rank)) left.emplace_back(rank, i);
      for (const Node& from : left) reach[from] = reached_from(from);
    }
    std::set<std::set<int>> found;
    std::set<Node> told;
    for (const auto& [node, to] : reach) {
      if (!to.contains(node) || told.contains(node)) continue;
      std::set<int> ranks;
      for (const Node& other : to) {
        if (!reach.at(other).contains(node)) continue;
        told.insert(other);
        ranks.insert(static_cast<int>(other.first));
      }
      found.insert(ranks);
    }
    return found;
  }

 private:
  static constexpr std::size_t kHost = SIZE_MAX;
  using Node = std::pair<std::size_t, std::size_t>;  // rank, and index in its list

  std::set<Node> reached_from(const Node& start) const {
    std::set<Node> reached;
    std::vector<Node> left{start};
    while (!left.empty()) {
      const Node at = left.back();
      left.pop_back();
      for (const Node& to : waits_for(at)) {
        if (reached.insert(to).second) left.push_back(to);
      }
    }
    return reached;
  }

  std::vector<std::size_t> open(std::size_t rank) const {
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < host_[rank]; ++i) {
      if (ring_[rank][i].streamed() && !over_[rank][i]) indices.push_back(i);
    }
    return indices;
  }

  // The first on its stream that is not over.
  std::size_t head(std::size_t rank, std::size_t index) const {
    std::size_t first = 0;
    while (!ring_[rank][first].streamed() || over_[rank][first] ||
           ring_[rank][first].stream != ring_[rank][index].stream)
      ++first;
    return first;
  }

  bool runs(std::size_t rank, std::size_t index) const {
    return index < host_[rank] && !over_[rank][index] && head(rank, index) == index;
  }

  // What the host cannot go on before.
  std::vector<std::size_t> host_waits(std::size_t rank) const {
    const std::size_t at = host_[rank];
    const auto& list = ring_[rank];
    if (at > 0 && list[at - 1].streamed() && !list[at - 1].async && !at_once_ && !over_[rank][at - 1]) return {at - 1};
    if (at == list.size() || list[at].kind == RingOp::Kind::sync) return open(rank);
    if (list[at].kind != RingOp::Kind::wait) return {};
    const auto index = static_cast<std::size_t>(list[at].waits_for);
    return over_[rank][index] ? std::vector<std::size_t>() : std::vector<std::size_t>{index};
  }

  // The n-th op of a kind.
  std::optional<std::size_t> nth(std::size_t rank, RingOp::Kind kind, std::size_t n) const {
    for (std::size_t i = 0; i < ring_[rank].size(); ++i) {
      if (ring_[rank][i].kind == kind && n-- == 0) return i;
    }
    return std::nullopt;
  }

  // All that have to run for this one to end.
  std::vector<Node> partners(std::size_t rank, std::size_t index) const {
    const RingOp& op = ring_[rank][index];
    const auto n = static_cast<std::size_t>(std::count_if(ring_[rank].begin(),
                                                          ring_[rank].begin() + static_cast<std::ptrdiff_t>(index),
                                                          [&](const RingOp& other) { return other.kind == op.kind; }));
    std::vector<Node> all;
    if (op.kind == RingOp::Kind::barrier) {
      for (std::size_t other = 0; other < ring_.size(); ++other) all.emplace_back(other, *nth(other, op.kind, n));
      return all;
    }
    const bool sends = op.kind == RingOp::Kind::send;
    const std::size_t other = (rank + (sends ? 1 : ring_.size() - 1)) % ring_.size();
    return {{other, *nth(other, sends ? RingOp::Kind::recv : RingOp::Kind::send, n)}};
  }

  std::vector<Node> waits_for(const Node& node) const {
    const auto& [rank, index] = node;
    std::vector<Node> to;
    if (index == kHost) {
      for (const std::size_t i : host_waits(rank)) to.emplace_back(rank, i);
      return to;
    }
    if (!runs(rank, index)) return {{rank, head(rank, index)}};
    for (const auto& [other, at] : partners(rank, index)) {
      if (runs(other, at)) continue;
      to.emplace_back(other, at < host_[other] ? at : kHost);
    }
    return to;
  }

  bool step() {
    bool moved = false;
    for (std::size_t rank = 0; rank < ring_.size(); ++rank) {
      while (host_[rank] < ring_[rank].size() && host_waits(rank).empty()) {
        ++host_[rank];
        moved = true;
      }
      for (const std::size_t i : open(rank)) {
        const auto others = partners(rank, i);
        const bool all = runs(rank, i) && std::all_of(others.begin(), others.end(), [&](const Node& other) {
                           return runs(other.first, other.second);
                         });
        if (!all) continue;
        over_[rank][i] = moved = true;
        for (const auto& [other, at] : others) over_[other][at] = true;
      }
    }
    return moved;
  }

  const Ring& ring_;
  bool at_once_;
  std::vector<std::size_t> host_;  // next op
  std::vector<std::vector<bool>> over_;
};

std::set<std::set<int>> circles_told(const std::vector<Finding>& findings) {
  std::set<std::set<int>> told;
  for (const Finding& f : findings) {
    if (f.code != "p2p-cycle") continue;
    std::set<int> ranks;
    for (const RankId rank : f.ranks) ranks.insert(static_cast<int>(rank.value));
    told.insert(ranks);
  }
  return told;
}

// Each line of the circle begins with who waits, and ends with who waits in the next one.
void expect_closed(const Finding& f) {
  const std::size_t at = f.explanation.find("The circle:\n");
  ASSERT_NE(at, std::string::npos) << f.explanation;
  std::vector<std::string> waiting, awaited;
  std::istringstream lines(f.explanation.substr(at + 12));
  for (std::string line; std::getline(lines, line) && line.starts_with("  rank ");) {
    waiting.push_back(line.substr(2, line.find(" waits") - 2));
    const std::size_t behind = line.rfind(" for rank ") + 5;
    awaited.push_back(line.substr(behind, line.find_first_of(" ", behind + 5) - behind));
  }
  ASSERT_FALSE(waiting.empty()) << f.explanation;
  if (f.explanation.find("steps in all") != std::string::npos) return;  // cut
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    EXPECT_EQ(awaited[i], waiting[(i + 1) % waiting.size()]) << f.explanation;
  }
}

void expect_first(const std::vector<Finding>& findings, std::string_view code, std::string_view ranks,
                  std::string_view victims) {
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].code, code) << told(findings);
  EXPECT_EQ(findings[0].ranks.text(), ranks) << told(findings);
  EXPECT_EQ(findings[0].victims.text(), victims) << told(findings);
}

std::vector<Finding> judged(const std::string& ops) {
  Evidence evidence;
  evidence.trace = testing::snapshot_of(ops);
  return analyzers::analyze(evidence);
}

TEST(Rings, a_wait_for_an_earlier_handle_closes_the_circle) {
  // Each host went on to its receive from a third rank, which comes; it is the send that it waits for.
  const auto findings = judged(
      "world 3\n0 send f32 8 to 1 async=s stream=1\n0 recv f32 8 from 2 async=r stream=2\n0 wait s\n"
      "0 recv f32 8 from 1 stream=1\n1 send f32 8 to 0 async=s stream=1\n1 wait s\n1 recv f32 8 from 0 stream=1\n"
      "2 barrier\n2 send f32 8 to 0\n0 barrier\n1 barrier\n");
  expect_first(findings, "p2p-cycle", "0,1", "2");
}

TEST(Rings, who_waits_for_a_queue_is_a_victim) {
  // Rank 2 sends to rank 0, whose receive is enqueued behind the circle.
  const auto findings = judged(
      "world 3\n0,1 host_sync\n0 send f32 8 to 1 async\n0 recv f32 8 from 1 async\n0 recv f32 8 from 2 async\n"
      "1 send f32 8 to 0 async\n1 recv f32 8 from 0 async\n2 send f32 8 to 0\n");
  ASSERT_EQ(findings.size(), 1u) << told(findings);
  expect_first(findings, "p2p-cycle", "0,1", "2");
}

TEST(Rings, a_circle_through_a_collective_is_shown_as_it_goes) {
  // Of the two streams of rank 0 only one is part of it.
  const auto findings = judged(
      "world 3\npg g = 0,1\n0 send f32 8 to 2 async stream=5\n0 send f32 8 to 1 async stream=1\n"
      "0 all_reduce f32 8 g stream=1\n1 all_reduce f32 8 g stream=1\n1 recv f32 8 from 0 stream=1\n"
      "2 recv f32 8 from 1\n2 recv f32 8 from 0\n1 send f32 8 to 2\n");
  ASSERT_FALSE(findings.empty());
  expect_first(findings, "order-cross-group", "0,1", "2");
  EXPECT_NE(findings[0].explanation.find("rank 0 waits in send f32 x 8 to 1"), std::string::npos) << told(findings);
  EXPECT_NE(findings[0].explanation.find("rank 1 waits in all_reduce f32 x 8"), std::string::npos) << told(findings);
  EXPECT_EQ(findings[0].explanation.find("to 2"), std::string::npos) << told(findings);
}

class RandomRings : public ::testing::TestWithParam<int> {};

TEST_P(RandomRings, their_circles_are_named) {
  int stuck = 0, whole = 0;
  for (int i = 0; i < 100; ++i) {
    const auto seed = static_cast<std::uint64_t>(GetParam() * 100 + i);
    std::mt19937_64 random(seed);
    const Ring ring = random_ring(random);
    sim::ReplayOptions model;
    model.stream_ordered = seed % 3 == 0;
    const RingOracle oracle(ring, model.stream_ordered);
    Evidence evidence;
    const auto result = sim::replay(testing::trace_of(ops_of(ring)), model);
    evidence.trace = result.snapshot;
    const auto findings = analyzers::analyze(evidence);
    SCOPED_TRACE(fmt::format("seed {}\n{}{}", seed, ops_of(ring), told(findings)));
    ASSERT_EQ(result.outcome == sim::ReplayResult::Outcome::completes, oracle.completes()) << result.reason;
    if (oracle.completes()) {
      ++whole;
      EXPECT_TRUE(findings.empty());
      continue;
    }
    ++stuck;
    EXPECT_EQ(circles_told(findings), oracle.circles());
    for (const Finding& f : findings) {
      if (f.code == "p2p-cycle") expect_closed(f);
    }
  }
  EXPECT_GT(stuck, 10);
  EXPECT_GT(whole, 10);
}

// What recorders with start times would have left of it: for which of its calls a host waits they do not tell.
TEST_P(RandomRings, their_circles_are_named_by_dumps) {
  int stuck = 0;
  for (int i = 0; i < 100; ++i) {
    const auto seed = static_cast<std::uint64_t>(GetParam() * 100 + i);
    std::mt19937_64 random(seed);
    const Ring ring = random_ring(random);
    const RingOracle oracle(ring, false);
    if (oracle.completes()) continue;
    ++stuck;
    Evidence evidence;
    evidence.trace = testing::cut(sim::replay(testing::trace_of(ops_of(ring))), {});
    const auto findings = analyzers::analyze(evidence);
    SCOPED_TRACE(fmt::format("seed {}\n{}{}", seed, ops_of(ring), told(findings)));
    EXPECT_EQ(circles_told(findings), oracle.circles());
  }
  EXPECT_GT(stuck, 10);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomRings, ::testing::Range(0, 5));

}  // namespace
}  // namespace ddx
