#include <gtest/gtest.h>

#include "traces/model/evidence.h"

namespace ddx {
namespace {

// The evidence of one dump: rank `rank` calls `name` on `group` at `file`:7.
Evidence dump(int rank, const std::string& group, const std::string& name, const std::string& file) {
  Evidence evidence;
  evidence.inputs.emplace_back().path = "rank_" + std::to_string(rank);
  Trace& trace = evidence.trace;
  trace.strings.intern("only in rank " + std::to_string(rank));  // so that ids differ between dumps
  Communicator communicator;
  communicator.name = trace.strings.intern(group);
  communicator.members = {RankId(0), RankId(1)};
  Signature signature;
  signature.kind = OpKind::all_reduce;
  signature.name = trace.strings.intern(name);
  CallSite site;
  site.frames.push_back({trace.strings.intern("f"), trace.strings.intern(file), 7});
  Op op;
  op.signature = trace.intern(signature);
  op.comm_slot = 0;
  op.call_site = trace.intern(site);
  trace.programs.emplace_back().append(op);
  RankRecord& record = trace.ranks.emplace_back();
  record.rank = RankId(rank);
  record.program = ProgramId(0);
  record.comms = {trace.intern(communicator)};
  record.input = InputId(0);
  LogEvent& event = evidence.events.emplace_back();
  event.input = InputId(0);
  event.line = 5;
  evidence.diagnostics.count("test.thing", DiagnosticSeverity::notice, "of rank " + std::to_string(rank));
  return evidence;
}

TEST(Merge, rewrites_every_id) {
  Evidence all = dump(0, "pg", "nccl:a", "x.py");
  all.merge(dump(1, "pg", "nccl:b", "y.py"));
  all.merge(dump(2, "other", "nccl:a", "x.py"));
  const Trace& trace = all.trace;
  ASSERT_EQ(trace.ranks.size(), 3U);
  const std::string groups[] = {"pg", "pg", "other"};
  const std::string names[] = {"nccl:a", "nccl:b", "nccl:a"};
  const std::string files[] = {"x.py", "y.py", "x.py"};
  for (std::size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    const RankRecord& record = trace.ranks[i];
    const Program& program = trace.program(record);
    EXPECT_EQ(record.rank, RankId(static_cast<std::int64_t>(i)));
    EXPECT_EQ(record.input, InputId(i));
    EXPECT_EQ(all.inputs[i].path, "rank_" + std::to_string(i));
    EXPECT_EQ(all.events[i].input, InputId(i));
    EXPECT_EQ(trace.text(trace.communicator(record.comms[0]).name), groups[i]);
    EXPECT_EQ(trace.text(trace.signature(program.signature(0)).name), names[i]);
    EXPECT_EQ(trace.text(trace.call_site(*program.call_site(0)).frames[0].file), files[i]);
  }
  EXPECT_EQ(all.diagnostics.count_of("test.thing"), 3U);
}

TEST(Merge, equal_rows_become_one) {
  Evidence all = dump(0, "pg", "nccl:a", "x.py");
  all.merge(dump(1, "pg", "nccl:a", "x.py"));
  EXPECT_EQ(all.trace.ranks[0].comms, all.trace.ranks[1].comms) << "ranks of one communicator can be compared by id";
  EXPECT_EQ(all.trace.communicators().size(), 1U);
  EXPECT_EQ(all.trace.signatures().size(), 1U);
  EXPECT_EQ(all.trace.call_sites().size(), 1U);
}

TEST(Merge, the_larger_world_is_kept) {
  Trace trace, other;
  trace.merge(Trace(), 0);
  EXPECT_EQ(trace.world_size, std::nullopt) << "nobody said one";
  other.world_size = 8;
  trace.merge(std::move(other), 0);
  EXPECT_EQ(trace.world_size, 8U);
  Trace smaller;
  smaller.world_size = 4;
  trace.merge(std::move(smaller), 0);
  EXPECT_EQ(trace.world_size, 8U);
}

}  // namespace
}  // namespace ddx
