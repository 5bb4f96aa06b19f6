// Cases of public reports (tests/sim/data), with outcomes that were computed by another checker than this one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "sim/replay/reference_replay.h"
#include "tests/support/ops_text.h"

namespace ddx::sim {
namespace {

struct Case {
  std::string name;
  std::string outcome;
  std::map<int, std::string> blocked;       // rank -> operation and group
  std::string mismatch;                     // group, index from 0, and who calls what
  std::map<int, std::string> stopped = {};  // rank -> how
};

Trace load(const std::string& name) {
  std::ifstream in(fmt::format("{}/tests/sim/data/{}.ops", DDX_SOURCE_DIR, name));
  std::ostringstream text;
  text << in.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return ddx::testing::trace_of(text.str());
}

std::string call_text(const Trace& trace, const ReplayMismatch::Variant& variant) {
  const Signature& s = trace.signature(variant.signature);
  std::string text(name_of(s.kind));
  if (s.kind == OpKind::new_group) return fmt::format("{} {}", text, fmt::join(s.members, ","));
  if (s.count_in) text += fmt::format(" {} {}", name_of(s.type_in), *s.count_in);
  if (variant.root) text += fmt::format(" root={}", *variant.root);
  return text;
}

std::string mismatch_text(const Trace& trace, const ReplayResult& result) {
  if (result.mismatches.empty()) return "";
  const ReplayMismatch& first = result.mismatches.front();
  std::string text = fmt::format("{} {}:", trace.text(trace.communicator(first.comm).name), first.seq - 1);
  for (const auto& variant : first.variants) {
    text += fmt::format(" [{}] {}", variant.ranks.text(), call_text(trace, variant));
  }
  return text;
}

// The op that a rank's host waits for: the only one that is started.
std::map<int, std::string> blocked(const ReplayResult& result) {
  std::map<int, std::string> blocked;
  const Trace& trace = result.snapshot;
  for (const RankRecord& record : trace.ranks) {
    if (!result.unfinished.contains(*record.rank)) continue;
    const Program& program = trace.program(record);
    for (std::size_t row = 0; row < program.size(); ++row) {
      if (program.state(row) != OpState::started) continue;
      const CommId comm = record.comms[*program.comm_slot(row)];
      blocked[record.rank->value] = fmt::format("{} {}", name_of(trace.signature(program.signature(row)).kind),
                                                trace.text(trace.communicator(comm).name));
    }
  }
  return blocked;
}

// Ranks that came to a stop, and to which.
std::map<int, std::string> stopped(const Trace& snapshot) {
  std::map<int, std::string> stopped;
  for (const RankRecord& record : snapshot.ranks) {
    const Program& program = snapshot.program(record);
    for (std::size_t row = 0; row < program.size(); ++row) {
      const Signature& s = snapshot.signature(program.signature(row));
      if (s.kind != OpKind::stop || program.state(row) != OpState::completed) continue;
      stopped[record.rank->value] = name_of(s.stop_reason);
    }
  }
  return stopped;
}

std::map<int, std::string> all_in(const std::string& what, std::initializer_list<int> ranks) {
  std::map<int, std::string> blocked;
  for (const int rank : ranks) blocked[rank] = what;
  return blocked;
}

std::map<int, std::string> and_in(std::map<int, std::string> first, const std::map<int, std::string>& more) {
  first.insert(more.begin(), more.end());
  return first;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases{
      {"s12", "mismatch", {}, "pg0 0: [0] all_reduce f32 409600 [1-7] all_reduce f32 409598"},
      {"s13", "mismatch", {}, "pg0 0: [0] all_reduce f32 209715200 [1-7] all_reduce f32 104857600"},
      {"s14", "mismatch", {}, "pg0 1: [0] all_gather f32 5373952 [1] all_gather f32 5242880"},
      {"s15", "mismatch", {}, "pg0 2: [0,1] barrier [2] all_reduce f32 8"},
      {"s16", "mismatch", {}, "pg0 5: [0,2,3] all_gather bf16 9000 [1] all_gather bf16 70000"},
      {"s17", "mismatch", {}, "pg0 5: [0] all_reduce f32 1 [1] broadcast i64 1 root=0"},
      {"s18", "deadlock", {{0, "all_reduce pgA"}, {1, "all_gather pgB"}}, ""},
      {"s19", "deadlock", {{0, "send pgA"}, {2, "recv pgB"}}, ""},
      {"s20", "deadlock", and_in(all_in("broadcast pgN", {0, 1, 3}), {{2, "all_reduce pg0"}}), ""},
      {"s21", "mismatch", {}, "pg0* 0: [0,1] new_group 0,2 [2,3] new_group 1,3"},
      {"s22", "completes", {}, ""},
      {"s23", "deadlock", all_in("send pg0", {0, 1, 2, 3}), ""},
      {"s24", "completes", {}, ""},
      {"s27", "mismatch", {}, "pg0 1: [0] all_gather bf16 256 [1-3] barrier"},
      {"s28", "mismatch", {}, "pg0 0: [0] broadcast u8 64 root=0 [1] all_reduce f32 1000"},
      {"s29", "deadlock", all_in("barrier pg0", {0, 1, 3}), "", {{2, "raise"}}},
      {"s37", "deadlock", all_in("all_gather pg0", {0, 2}), "", {{1, "stuck"}}},
      {"s40", "deadlock",
       and_in(all_in("all_gather pgX", {0, 1}),
              all_in("barrier pg0", {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})),
       ""},
  };
  return kCases;
}

TEST(ReplayCases, agree_with_the_serial_checker) {
  for (const Case& expected : cases()) {
    SCOPED_TRACE(expected.name);
    const Trace trace = load(expected.name);
    const ReplayResult result = replay(trace);
    EXPECT_EQ(name_of(result.outcome), expected.outcome) << result.reason;
    EXPECT_EQ(mismatch_text(trace, result), expected.mismatch);
    EXPECT_EQ(stopped(result.snapshot), expected.stopped);
    if (expected.outcome != "mismatch") {
      EXPECT_EQ(blocked(result), expected.blocked);
    }
  }
}

// A case that is in the folder and not in the list would say nothing.
TEST(ReplayCases, are_all_of_the_folder) {
  std::set<std::string> listed, there;
  for (const Case& each : cases()) listed.insert(each.name);
  for (const auto& file : std::filesystem::directory_iterator(DDX_SOURCE_DIR "/tests/sim/data")) {
    if (file.path().extension() == ".ops") there.insert(file.path().stem());
  }
  EXPECT_EQ(listed, there);
}

TEST(ReplayCases, do_not_depend_on_the_order_of_visits) {
  for (const Case& each : cases()) {
    const Trace trace = load(each.name);
    const std::string in_order = ddx::testing::text_of(replay(trace).snapshot);
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      ReplayOptions options;
      options.visit_seed = seed;
      const ReplayResult result = replay(trace, options);
      EXPECT_EQ(name_of(result.outcome), each.outcome) << each.name << " seed " << seed;
      EXPECT_EQ(ddx::testing::text_of(result.snapshot), in_order) << each.name << " seed " << seed;
    }
  }
}

TEST(ReplayCases, a_mismatch_that_does_not_block_is_still_told) {
  ReplayOptions options;
  options.mismatch_blocks = false;
  const ReplayResult result = replay(load("s14"), options);
  EXPECT_EQ(result.outcome, ReplayResult::Outcome::mismatch);
  EXPECT_TRUE(result.unfinished.empty());
}

}  // namespace
}  // namespace ddx::sim
