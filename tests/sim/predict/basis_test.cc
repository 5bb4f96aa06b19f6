#include "sim/predict/basis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/ops_text.h"

namespace ddx::sim {
namespace {

using ddx::testing::trace_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SignatureId computation(Trace& trace, std::optional<Nanos> length) {
  Signature signature;
  signature.kind = OpKind::compute;
  signature.compute_time = length;
  return trace.intern(signature);
}

std::string error_of(const Trace& trace) {
  try {
    check_basis(trace);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Basis, an_empty_trace_is_none) {
  EXPECT_THAT(error_of({}), HasSubstr("no rank"));
  Trace idle = trace_of("world 2\nall barrier\n");
  for (Program& program : idle.programs) program = {};
  EXPECT_THAT(error_of(idle), HasSubstr("no operation"));
}

TEST(Basis, times_that_cannot_be_are_none) {
  Trace trace = trace_of("world 2\nall barrier\n1 compute 1us\n");
  Op op;
  op.signature = computation(trace, -5);
  trace.programs[trace.ranks[1].program.value].append(op);
  EXPECT_THAT(error_of(trace), AllOf(HasSubstr("operation 2 of rank 1"), HasSubstr("-5 ns")));

  trace = trace_of("world 2\nall barrier\n");
  op.signature = computation(trace, 7);
  op.start = 100;
  op.end = 93;
  trace.programs[trace.ranks[0].program.value].append(op);
  EXPECT_THAT(error_of(trace), AllOf(HasSubstr("operation 1 of rank 0"), HasSubstr("7 ns before it starts")));
}

// A computation without a length is refused by the replay.
TEST(Basis, what_computes_nothing_is_told) {
  EXPECT_THAT(check_basis(trace_of("world 2\nall barrier\n")), ElementsAre(HasSubstr("no computation")));
  EXPECT_THAT(check_basis(trace_of("world 2\nall compute 1us\nall barrier\n")), IsEmpty());
}

}  // namespace
}  // namespace ddx::sim
