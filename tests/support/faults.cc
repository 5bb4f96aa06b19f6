#include <algorithm>
#include <set>

#include "tests/support/random_program.h"

namespace ddx::testing {
namespace {

using List = std::vector<Call>;

// Whether swapping these two neighbours is the fault that `kind` means.
bool swappable(const CallLists& lists, const Call& a, const Call& b, FaultKind kind) {
  if (!is_collective(a.kind) || !is_collective(b.kind) || a.async_id != 0 || b.async_id != 0) return false;
  if (kind == FaultKind::swap) return a.group == b.group && !a.same_call(b);
  if (a.group == b.group) return false;
  const auto of_a = lists.members(a.group);
  const auto of_b = lists.members(b.group);
  const auto common = std::count_if(of_a.begin(), of_a.end(),
                                    [&](int rank) { return std::find(of_b.begin(), of_b.end(), rank) != of_b.end(); });
  return common >= 2;
}

bool fits(const CallLists& lists, const List& list, std::size_t at, FaultKind kind) {
  const Call& call = list[at];
  switch (kind) {
    case FaultKind::swap:
    case FaultKind::swap_groups: return at + 1 < list.size() && swappable(lists, call, list[at + 1], kind);
    case FaultKind::reroot: return is_rooted(call.kind) && lists.members(call.group).size() > 1;
    case FaultKind::resize:
    case FaultKind::retype: return is_collective(call.kind) && call.kind != OpKind::barrier;
    default: return is_collective(call.kind);
  }
}

void change_kind(Call& call, std::mt19937_64& random) {
  const OpKind before = call.kind;
  while (call.kind == before) {
    constexpr OpKind kKinds[] = {OpKind::all_reduce, OpKind::all_gather, OpKind::barrier};
    call.kind = kKinds[draw(random, std::size(kKinds))];
  }
  call.peer = -1;
  call.redop = call.kind == OpKind::all_reduce ? RedOp::sum : RedOp::unknown;
  if (call.kind == OpKind::barrier) call.count = 0;
  if (call.kind != OpKind::barrier && call.count == 0) call.count = 16;
}

void apply(CallLists& lists, List& list, Fault& fault, std::mt19937_64& random) {
  Call& call = list[fault.at];
  const auto here = list.begin() + static_cast<std::ptrdiff_t>(fault.at);
  switch (fault.kind) {
    case FaultKind::skip: list.erase(here); return;
    case FaultKind::extra: {
      Call copy = call;
      copy.async_id = 0;
      list.insert(here, copy);
      return;
    }
    case FaultKind::swap:
    case FaultKind::swap_groups: std::swap(call, list[fault.at + 1]); return;
    case FaultKind::resize: call.count += 1 + draw(random, 1000); return;
    case FaultKind::retype: call.type = call.type == DataType::f64 ? DataType::f32 : DataType::f64; return;
    case FaultKind::reroot: {
      const auto members = lists.members(call.group);
      const auto at = std::find(members.begin(), members.end(), call.peer) - members.begin();
      call.peer = members[(static_cast<std::size_t>(at) + 1) % members.size()];
      return;
    }
    case FaultKind::rekind: change_kind(call, random); return;
    case FaultKind::kill:
    case FaultKind::stuck:
      call = {};
      call.kind = OpKind::stop;
      call.stop = fault.kind == FaultKind::kill ? StopReason::crash : StopReason::stuck;
      list.resize(fault.at + 1);
      return;
  }
}

}  // namespace

std::string_view name_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::skip: return "skip";
    case FaultKind::extra: return "extra";
    case FaultKind::swap: return "swap";
    case FaultKind::resize: return "resize";
    case FaultKind::retype: return "retype";
    case FaultKind::reroot: return "reroot";
    case FaultKind::rekind: return "rekind";
    case FaultKind::kill: return "kill";
    case FaultKind::stuck: return "stuck";
    case FaultKind::swap_groups: return "swap_groups";
  }
  return "?";
}

std::optional<Fault> inject(CallLists& lists, FaultKind kind, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::pair<int, std::size_t>> places;
  for (std::size_t rank = 0; rank < lists.ranks.size(); ++rank) {
    for (std::size_t at = 0; at < lists.ranks[rank].size(); ++at) {
      if (fits(lists, lists.ranks[rank], at, kind)) places.emplace_back(static_cast<int>(rank), at);
    }
  }
  if (places.empty()) return std::nullopt;
  const auto [rank, at] = places[draw(random, places.size())];
  List& list = lists.ranks[static_cast<std::size_t>(rank)];
  Fault fault{kind, rank, at, list[at]};
  apply(lists, list, fault, random);
  return fault;
}

}  // namespace ddx::testing
