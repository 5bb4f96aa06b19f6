// Writing the ops notation: text that reads well, and reads back as the same trace.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/ops_text.h"
#include "tests/support/random_program.h"

namespace ddx::formats {
namespace {

using ddx::testing::text_of;
using ddx::testing::trace_of;

// Everything that a trace says of its ranks, with the interned ids resolved: what must survive a round trip.
class Described {
 public:
  explicit Described(const Trace& trace) : t_(trace) {}
  std::vector<std::string> lines() {
    lines_.push_back(fmt::format("world {}", t_.world_size.value_or(0)));
    for (const RankRecord& record : t_.ranks) rank(record);
    return std::move(lines_);
  }

 private:
  template <class T>
  static std::string maybe(const std::optional<T>& value) {
    return value ? fmt::format("{}", *value) : "-";
  }
  std::string comm(CommId id) const {
    const Communicator& c = t_.communicator(id);
    std::string text =
        fmt::format("{}/{}/{}/{}:", t_.text(c.name), t_.text(c.description), maybe(c.declared_size), c.synthesized);
    for (const RankId member : c.members) text += fmt::format(" {}", member.value);
    return text;
  }
  void rank(const RankRecord& r) {
    lines_.push_back(fmt::format(
        "rank {} {}{}{}{}{}{}{} timing {} host {} pid {} attempt {} backend {} library {} device {}", r.rank->value,
        r.snapshot, r.whole_program, r.stream_ordered, r.head_lost, r.tail_lost, r.rank_guessed, r.sends_end_locally,
        maybe(r.timing), r.host, maybe(r.pid), maybe(r.attempt), r.backend, r.library_version, r.device));
    for (std::size_t slot = 0; slot < r.comms.size(); ++slot) {
      const CommProgress& p = r.progress[slot];
      lines_.push_back(fmt::format("  slot {} {} pos {} progress {} {} {}", slot, comm(r.comms[slot]),
                                   r.comm_rank[slot], maybe(p.last_enqueued), maybe(p.last_started),
                                   maybe(p.last_completed)));
    }
    const Program& program = t_.program(r);
    for (const Loop& loop : program.loops)
      lines_.push_back(fmt::format("  loop {}-{} {}", loop.begin, loop.end, loop.count));
    for (std::size_t row = 0; row < program.size(); ++row) op(r, program.at(OpId(row)));
  }
  void op(const RankRecord& r, const Op& row) {
    const Signature& s = t_.signature(row.signature);
    std::string text =
        fmt::format("  {} {}/{} {} {} async {} in {} out {} peer {} tag {} stream {} time {} handle {}",
                    name_of(s.kind), name_of(s.type_in), name_of(s.type_out), name_of(s.redop), name_of(s.stop_reason),
                    s.async, maybe(s.count_in), maybe(s.count_out), maybe(t_.peer(r, s)), maybe(s.tag), maybe(s.stream),
                    maybe(s.compute_time), maybe(s.handle));
    text += fmt::format(" splits {}/{} shapes {}/{} members {} color {} key {} name {}", fmt::join(s.split_in, ","),
                        fmt::join(s.split_out, ","), s.shape_in.size(), s.shape_out.size(), fmt::join(s.members, ","),
                        maybe(s.color), maybe(s.key), t_.text(s.name));
    for (const auto& shape : s.shape_in) text += fmt::format(" [{}]", fmt::join(shape, ","));
    text += fmt::format(" slot {} seq {} group {} at {} {} {} {} {}", row.comm_slot.value_or(999), maybe(row.seq),
                        maybe(row.group), maybe(row.issue), maybe(row.start), maybe(row.end), name_of(row.state),
                        row.retired);
    if (row.call_site) {
      for (const Frame& frame : t_.call_site(*row.call_site).frames) {
        text += fmt::format(" @{}:{}:{}", t_.text(frame.file), frame.line, t_.text(frame.function));
      }
    }
    lines_.push_back(text);
  }

  const Trace& t_;
  std::vector<std::string> lines_;
};

void expect_round_trip(const Trace& trace, const std::string& what) {
  const std::string text = text_of(trace);
  const Trace again = trace_of(text);
  EXPECT_EQ(Described(again).lines(), Described(trace).lines()) << what << "\n" << text;
  EXPECT_EQ(again.programs.size(), trace.programs.size()) << what;
  EXPECT_EQ(text_of(again), text) << what;
}

TEST(OpsWriter, writes_ranks_that_do_the_same_together) {
  EXPECT_EQ(text_of(trace_of("world 4\n"
                             "pg tp = 2,0\n"
                             "repeat 10\n"
                             "all all_reduce f32 8 redop=sum\n"
                             "0,2 repeat 2\n"
                             "0,2 all_gather bf16 4 tp async=h\n"
                             "0,2 wait h\n"
                             "end\n"
                             "end\n"
                             "3 stuck  in  I/O\n"
                             "0 send i64 3 to 2 tp tag=4\n"
                             "2 recv i64 3 from 0 tp tag=4\n")),
            "world 4\n"
            "pg tp = 2,0\n"
            "0 repeat 10\n"
            "  0 all_reduce f32 8 pg0 redop=sum\n"
            "  0 repeat 2\n"
            "    0 all_gather bf16 4 tp async\n"
            "    0 wait 0\n"
            "  end\n"
            "end\n"
            "0 send i64 3 to 2 tp tag=4\n"
            "1 repeat 10\n"
            "  1 all_reduce f32 8 pg0 redop=sum\n"
            "end\n"
            "2 repeat 10\n"
            "  2 all_reduce f32 8 pg0 redop=sum\n"
            "  2 repeat 2\n"
            "    2 all_gather bf16 4 tp async\n"
            "    2 wait 0\n"
            "  end\n"
            "end\n"
            "2 recv i64 3 from 0 tp tag=4\n"
            "3 repeat 10\n"
            "  3 all_reduce f32 8 pg0 redop=sum\n"
            "end\n"
            "3 stuck \"in I/O\"\n");
}

TEST(OpsWriter, reads_back_everything_the_notation_says) {
  const std::string texts[] = {
      "world 3\n",
      "world 6\npg tp = 5,4,3\n3-5 broadcast f32 1 root=1 tp\n4 broadcast f32 1 root=9 tp\n4 send f32 1 to pos:-2 tp\n",
      "world 2\n0 all_gather f32 6 out=13 out_type=bf16\n0 gather ? ? root=1\n0 send f32 6 to 1 out=6\n"
      "0 barrier in=1 type=f32\n0 unknown f32 3 name=\"nccl:all shuffle\"\n0 coalesced seq=3\n0 barrier no_group\n",
      "world 2\n0 all_to_all f32 6 splits=2,4\n1 all_to_all f32 6 in_splits=2,4 out_splits=1,5\n",
      "world 2\nall new_group 1,0\nall new_group 0\n0 split color=1 key=-2 pg0\n",
      "world 2\n0 group_begin\n0 send f32 1 to 1\n0 recv f32 1 from 1\n0 group_end\n1 recv f32 1 from 0 group=4\n",
      "world 4\n0-1 pg tp = 0,1,2\n2 pg tp = 0-3\n0-2 barrier tp\n0 pg tp = 0,3\n0 barrier tp\n0 barrier pg0\n",
      "world 4\nabsent 1,3\npg tp = ? size=2 desc=\"tensor parallel\" synthesized\n"
      "0 record snapshot local_sends head_lost tail_lost guessed timing=off host=\"node a\" pid=12 attempt=2 "
      "backend=nccl library=2 device=\"NVIDIA A100\"\n"
      "0 in pg0 enqueued=3 timeout=90s since=0\n0 in tp enqueued=9 started=8 completed=7 timeout=1500us since=7 "
      "pos=1\n"
      "0 barrier tp seq=9 issue=1 start=2 end=3 [scheduled] [retired]\n2 record whole snapshot stream_ordered "
      "timing=on\n",
      "world 2\npg \"a = b # c\" = 0,1\npg async = 1,0\npg \"x\\\"y\\n\" = 0\n"
      "all barrier \"a = b # c\"\nall barrier \"async\"\n0 barrier \"x\\\"y\\n\"\n0 crash \"\"\n",
      "world 2\n0 all_reduce f32 12 in_shapes=2x3,6 out_shapes=- @\"a b.py:3:f\" @/x/y.py:7\n0 compute 1us name=k "
      "stream=2\n"
      "0 host_sync\n",
      "world 2\npg pg0 = 1,0\nall barrier\nall new_group 0,1\n",
      "world 2\n0 barrier pg0*\n0 new_group 1\n0 new_group 1 pg0\n",
      "world 3\n1 new_group 0\npg pg0* = 0\n",  // a group that no rank has, of another's name
      "world 3\npg a = 0\npg a = 1\npg b = 2\n",
  };
  for (const std::string& text : texts) expect_round_trip(trace_of(text), text);
}

TEST(OpsWriter, reads_back_random_programs_and_their_snapshots) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    ddx::testing::ProgramOptions options;
    options.seed = seed;
    auto lists = ddx::testing::random_program(options);
    inject(lists, ddx::testing::FaultKind::skip, seed);
    const Trace trace = ddx::testing::trace_of(lists);
    expect_round_trip(trace, fmt::format("seed {}", seed));
    const std::string snapshot = text_of(sim::replay(trace).snapshot);
    EXPECT_EQ(text_of(trace_of(snapshot)), snapshot) << "seed " << seed;
  }
}

TEST(OpsWriter, says_what_it_leaves_out) {
  Trace trace = trace_of("world 2\nall barrier\n");
  trace.ranks.push_back(trace.ranks[0]);
  trace.ranks.push_back(trace.ranks[0]);
  trace.ranks.back().rank.reset();
  EXPECT_EQ(text_of(trace),
            "world 2\n"
            "# left out: 1 more record of ranks that have one\n"
            "# left out: 1 record without a rank\n"
            "0,1 barrier pg0\n");
}

}  // namespace
}  // namespace ddx::formats
