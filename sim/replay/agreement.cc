#include "sim/replay/agreement.h"

namespace ddx::sim {
namespace {

bool reduces(OpKind kind) {
  return kind == OpKind::all_reduce || kind == OpKind::reduce || kind == OpKind::reduce_scatter;
}

bool has_data(OpKind kind) {
  return kind != OpKind::barrier && kind != OpKind::new_group && kind != OpKind::split_group;
}

// Which counts are the same on every member. A gather has an output on its root only, a scatter an input; an exchange
// with split lists is compared pair by pair instead.
bool compares_in(const Signature& s) {
  if (s.kind == OpKind::scatter || !has_data(s.kind)) return false;
  return s.kind != OpKind::all_to_all || (s.split_in.empty() && s.split_out.empty());
}
bool compares_out(const Signature& s) {
  return s.kind == OpKind::all_gather || s.kind == OpKind::reduce_scatter || s.kind == OpKind::scatter;
}

template <class T>
bool may_equal(const std::optional<T>& a, const std::optional<T>& b) {
  return !a || !b || *a == *b;
}
template <class Enum>
bool may_equal(Enum a, Enum b) {
  return a == Enum::unknown || b == Enum::unknown || a == b;
}

// Only what a match compares.
Signature essence(const Signature& s) {
  Signature e;
  e.kind = s.kind;
  if (has_data(s.kind)) e.type_in = s.type_in;
  if (reduces(s.kind)) e.redop = s.redop;
  if (compares_in(s)) e.count_in = s.count_in;
  if (compares_out(s)) e.count_out = s.count_out;
  if (s.kind == OpKind::new_group) e.members = s.members;
  // Split lists of one call differ between its members as a rule; that some have any must not be lost.
  if (s.kind == OpKind::all_to_all && !compares_in(s)) e.split_in = {1};
  return e;
}

}  // namespace

bool collectives_agree(const Signature& a, const Signature& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == OpKind::new_group) return a.members == b.members;
  if (!has_data(a.kind)) return true;
  if (!may_equal(a.type_in, b.type_in)) return false;
  if (reduces(a.kind) && !may_equal(a.redop, b.redop)) return false;
  if (compares_in(a) && compares_in(b) && !may_equal(a.count_in, b.count_in)) return false;
  return !compares_out(a) || may_equal(a.count_out, b.count_out);
}

bool pair_agrees(const Signature& send, const Signature& recv) {
  const auto received = recv.count_in ? recv.count_in : recv.count_out;
  return may_equal(send.type_in, recv.type_in) && may_equal(send.count_in, received);
}

MatchClasses::MatchClasses(const Trace& trace) {
  Trace classes;
  class_.reserve(trace.signatures().size());
  for (const Signature& signature : trace.signatures()) {
    class_.push_back(classes.intern(essence(signature)).value);
  }
}

}  // namespace ddx::sim
