// Traces of few ranks laid over many, and faults put in on purpose.
#include "sim/replay/virtual_ranks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "sim/replay/injection.h"
#include "sim/replay/reference_replay.h"
#include "tests/support/ops_text.h"

namespace ddx::sim {
namespace {

using ddx::testing::trace_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The members of the group that a rank has under this name or one with a replica behind it.
std::string members_of(const Trace& trace, int rank, std::string_view group) {
  for (const RankRecord& record : trace.ranks) {
    if (record.rank != RankId(rank)) continue;
    for (const CommId comm : record.comms) {
      const std::string_view name = trace.text(trace.communicator(comm).name);
      if (name.substr(0, name.find('@')) != group) continue;
      std::string text;
      for (const RankId member : trace.communicator(comm).members) text += fmt::format("{},", member.value);
      return text;
    }
  }
  return "none";
}

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

constexpr const char* kGrid =
    "world 4\n"
    "0,1 pg tp = 0,1\n2,3 pg tp = 2,3\n0,2 pg dp = 0,2\n1,3 pg dp = 1,3\n"
    "all all_gather bf16 8 tp\nall reduce_scatter f32 64 dp\nall all_gather f32 32 dp\nall all_reduce f32 1 pg0\n";

TEST(Replicate, data_groups_grow_and_model_groups_are_there_once_a_replica) {
  Trace trace = trace_of(kGrid);
  replicate(trace, 12, {});
  EXPECT_EQ(trace.world_size, 12U);
  ASSERT_EQ(trace.ranks.size(), 12U);
  EXPECT_EQ(members_of(trace, 5, "tp"), "4,5,");
  EXPECT_EQ(members_of(trace, 5, "dp"), "1,3,5,7,9,11,");
  EXPECT_EQ(members_of(trace, 9, "dp"), "1,3,5,7,9,11,");
  EXPECT_EQ(members_of(trace, 9, "pg0"), "0,1,2,3,4,5,6,7,8,9,10,11,");
  EXPECT_EQ(replay(trace).outcome, ReplayResult::Outcome::completes);
  EXPECT_EQ(replay(trace).classes, 1U);
}

TEST(Replicate, what_is_sharded_stays_as_large_in_all) {
  Trace trace = trace_of(kGrid);
  replicate(trace, 12, {});
  const Program& rows = trace.program(trace.ranks[7]);
  const auto counts = [&](std::size_t row) {
    const Signature& s = trace.signature(rows.signature(row));
    return std::pair(*s.count_in, *s.count_out);
  };
  EXPECT_EQ(counts(0), std::pair(std::uint64_t{8}, std::uint64_t{16})) << "tensor parallel: the same in each replica";
  EXPECT_EQ(counts(1).first, 66U) << "64 elements over 6 ranks: parts of 11, the last ones padded";
  EXPECT_EQ(counts(1).second, 11U);
  EXPECT_EQ(counts(2), std::pair(std::uint64_t{11}, std::uint64_t{66}));
  EXPECT_EQ(counts(3), std::pair(std::uint64_t{1}, std::uint64_t{1})) << "an all_reduce is as large for all";
}

TEST(Replicate, sends_stay_within_their_replica_and_roots_do_not) {
  Trace trace = trace_of(
      "world 2\n"
      "0 send f32 8 to 1 pg0\n1 recv f32 8 from 0 pg0\n"
      "all broadcast f32 4 root=0 pg0\n");
  replicate(trace, 6, {});
  ASSERT_EQ(replay(trace).outcome, ReplayResult::Outcome::completes);
  for (const RankRecord& record : trace.ranks) {
    const Program& rows = trace.program(record);
    const int rank = record.rank->value;
    EXPECT_EQ(trace.peer(record, trace.signature(rows.signature(0))), rank % 2 == 0 ? rank + 1 : rank - 1);
    EXPECT_EQ(trace.peer(record, trace.signature(rows.signature(1))), 0);
  }
}

TEST(Replicate, says_what_it_assumed_and_what_it_cannot) {
  Trace trace = trace_of(kGrid);
  const Assumptions told = replicate(trace, 8, {});
  EXPECT_THAT(told, ElementsAre("8 ranks are 2 replicas of the 4 in the trace: rank j x 4 + r does what rank r does",
                                "groups that grow with the replicas: dp, pg0",
                                "groups that each replica has of its own: tp", HasSubstr("each rank's part shrinks")));
  EXPECT_THAT(error_of([] {
                Trace t = trace_of(kGrid);
                replicate(t, 6, {});
              }),
              HasSubstr("a multiple of 4"));
  const char* unnamed = "world 4\n0,1 pg left = 0,1\n2,3 pg left = 2,3\nall barrier left\n";
  EXPECT_THAT(error_of([&] {
                Trace t = trace_of(unnamed);
                replicate(t, 8, {});
              }),
              HasSubstr("--map left=data"));
  Trace mapped = trace_of(unnamed);
  RoleMap roles;
  roles.by_name["left"] = GroupRole::model;
  replicate(mapped, 8, roles);
  EXPECT_EQ(members_of(mapped, 6, "left"), "6,7,");
}

TEST(Roles, are_told_by_names) {
  const auto role = [](const std::string& name) {
    Trace trace = trace_of(fmt::format("world 8\npg {} = 0,1\n0,1 barrier {}\n", name, name));
    for (const Communicator& comm : trace.communicators()) {
      if (trace.text(comm.name) == name) return role_of(trace, comm, {});
    }
    return std::optional<GroupRole>();
  };
  for (const char* name : {"dp0", "DATA_PARALLEL_GROUP", "mesh_fsdp", "EXPERT_DATA_PARALLEL_GROUP", "dp_replicate"}) {
    EXPECT_EQ(role(name), GroupRole::data) << name;
  }
  for (const char* name : {"tp1", "TENSOR_MODEL_PARALLEL_GROUP", "pp", "CONTEXT_PARALLEL_GROUP", "ep_3", "mesh_tp"}) {
    EXPECT_EQ(role(name), GroupRole::model) << name;
  }
  EXPECT_EQ(role("left"), std::nullopt);
}

TEST(Lift, absent_ranks_do_what_a_recorded_one_does) {
  Trace trace = trace_of(
      "world 8\n0 pg tp = 0,1\n0 pg dp = 0,2,4,6\nabsent 1-7\n"
      "0 all_gather bf16 8 tp\n0 all_reduce f32 64 dp\n0 barrier pg0\n");
  const Assumptions told = lift(trace);
  ASSERT_EQ(trace.ranks.size(), 8U);
  EXPECT_EQ(members_of(trace, 5, "tp"), "4,5,");
  EXPECT_EQ(members_of(trace, 5, "dp"), "1,3,5,7,");
  EXPECT_EQ(replay(trace).outcome, ReplayResult::Outcome::completes);
  EXPECT_THAT(told,
              ElementsAre("ranks 1-7 do what rank 0 was recorded to do", HasSubstr("follow the recorded pattern")));
}

TEST(Lift, stages_of_a_pipeline_need_a_record_each) {
  const std::string first = "0 pg pp = 0,2\n0 pg dp = 0,1\n0 send f32 8 to 2 pp\n0 all_reduce f32 64 dp\n";
  const std::string second = "2 pg pp = 0,2\n2 pg dp = 2,3\n2 recv f32 8 from 0 pp\n2 all_reduce f32 64 dp\n";
  Trace whole = trace_of("world 4\nabsent 1,3\n" + first + second);
  lift(whole);
  EXPECT_EQ(members_of(whole, 3, "pp"), "1,3,");
  EXPECT_EQ(replay(whole).outcome, ReplayResult::Outcome::completes);
  EXPECT_THAT(error_of([&] {
                Trace half = trace_of("world 4\nabsent 1-3\n" + first);
                lift(half);
              }),
              HasSubstr("nothing is recorded of rank 2, and no recorded rank can stand for it: rank 2 is at place 1 of "
                        "group pp"));
}

TEST(Lift, a_world_beyond_all_bounds_is_refused) {
  Trace trace = trace_of("world 2\nall barrier\n");
  trace.world_size = 4'000'000'000U;
  EXPECT_THAT(error_of([&] { lift(trace); }), HasSubstr("a world of 4000000000 ranks"));
}

struct Injected {
  std::string told;
  ReplayResult result;
};

Injected injected(const std::string& text, const Injection& injection) {
  Trace trace = trace_of(text);
  Injected made;
  made.told = inject(trace, injection);
  made.result = replay(trace);
  return made;
}

constexpr const char* kLoop =
    "world 3\nrepeat 10\nall all_reduce f32 8\nall broadcast f32 4 root=0\nall all_gather f32 2 async=last\nall wait "
    "last\nend\n";

TEST(Inject, changes_one_operation_of_one_rank) {
  struct Row {
    InjectedFault fault;
    std::uint64_t index;
    const char* outcome;
    const char* told;
  };
  for (const Row& row :
       {Row{InjectedFault::skip, 9, "mismatch", "rank 1 leaves out its operation 9, broadcast 8 of pg0"},
        Row{InjectedFault::skip, 38, "deadlock", "rank 1 leaves out its operation 38, all_gather 30 of pg0"},
        Row{InjectedFault::duplicate, 8, "mismatch", "rank 1 makes its operation 8, all_reduce 7 of pg0 twice"},
        Row{InjectedFault::swap, 0, "mismatch",
            "rank 1 makes its operation 1, broadcast 2 of pg0 before operation 0, all_reduce 1 of pg0"},
        Row{InjectedFault::resize, 6, "mismatch", "rank 1 makes its operation 6, all_gather 6 of pg0 with 5 elements"},
        Row{InjectedFault::retype, 0, "mismatch",
            "rank 1 makes its operation 0, all_reduce 1 of pg0 with f64 elements"},
        Row{InjectedFault::reroot, 1, "mismatch",
            "rank 1 makes its operation 1, broadcast 2 of pg0 with the root at position 1 instead of 0"},
        Row{InjectedFault::kill, 20, "deadlock", "rank 1 is killed before its operation 20, all_reduce 16 of pg0"},
        Row{InjectedFault::delay, 0, "completes", "rank 1 comes 1 s late to its operation 0, all_reduce 1 of pg0"}}) {
    const Injected made = injected(kLoop, {row.fault, RankId(1), {row.index, ""}, {}, {}});
    EXPECT_EQ(name_of(made.result.outcome), row.outcome) << row.told;
    EXPECT_EQ(made.told, row.told);
  }
}

TEST(Inject, names_calls_by_group_and_number) {
  const Injected made = injected(kLoop, {InjectedFault::skip, RankId(2), {29, "pg0"}, {}, {}});
  EXPECT_EQ(made.told, "rank 2 leaves out its operation 37, broadcast 29 of pg0");
  ASSERT_FALSE(made.result.mismatches.empty());
  EXPECT_EQ(made.result.mismatches[0].seq, 29U);
}

TEST(Inject, leaves_everything_else_as_it_was) {
  Trace trace = trace_of(kLoop);
  const std::string before = ddx::testing::text_of(replay(trace).snapshot);
  inject(trace, {InjectedFault::resize, RankId(1), {4, ""}, 8, {}});
  EXPECT_EQ(ddx::testing::text_of(replay(trace).snapshot), before) << "8 elements are what it had";
}

TEST(Inject, says_what_does_not_fit) {
  const auto error = [](const Injection& injection) { return error_of([&] { injected(kLoop, injection); }); };
  EXPECT_EQ(error({InjectedFault::skip, RankId(7), {0, ""}, {}, {}}), "there is no rank 7 to put the fault into");
  EXPECT_EQ(error({InjectedFault::skip, RankId(1), {40, ""}, {}, {}}),
            "rank 1 has 40 operations, numbered from 0: there is no operation 40");
  EXPECT_EQ(error({InjectedFault::skip, RankId(1), {31, "pg0"}, {}, {}}), "rank 1 makes no collective 31 of group pg0");
  EXPECT_THAT(error({InjectedFault::reroot, RankId(1), {0, ""}, {}, {}}),
              HasSubstr("expected a collective with a root"));
}

}  // namespace
}  // namespace ddx::sim
