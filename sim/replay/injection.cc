#include "sim/replay/injection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "base/units.h"
#include "sim/replay/unrolled_program.h"

namespace ddx::sim {
namespace {

constexpr std::uint64_t kMaxOps = 50'000'000;

constexpr std::array<std::pair<InjectedFault, std::string_view>, 8> kNames{{
    {InjectedFault::skip, "skip"},
    {InjectedFault::duplicate, "duplicate"},
    {InjectedFault::swap, "swap"},
    {InjectedFault::resize, "resize"},
    {InjectedFault::retype, "retype"},
    {InjectedFault::reroot, "reroot"},
    {InjectedFault::kill, "kill"},
    {InjectedFault::delay, "delay"},
}};

// An operation of the list that is edited. What waits name by number is named here by place, until the list is final.
struct Item {
  Op op;
  std::uint32_t origin = kNoOp;     // its index before the edit
  std::uint32_t waits_for = kNoOp;  // of a wait: the origin of what it waits for
  std::uint32_t seq = 0;
};

// The count of the other side: as many times as much, or the same part of it.
std::uint64_t scaled(std::uint64_t other, std::uint64_t old, std::uint64_t count) {
  if (other == 0 || old == 0) return count;
  return other >= old ? other / old * count : count / (old / other);
}

class Editor {
 public:
  Editor(Trace& trace, const Injection& injection) : trace_(trace), injection_(injection) {}
  std::string run();

 private:
  void unroll_list();
  std::size_t find_place() const;
  std::string edit(std::size_t at);
  std::string swap(std::size_t at);
  std::string resize(std::size_t at);
  std::string reroot(std::size_t at);
  std::string delay(std::size_t at);
  void kill(std::size_t at);
  void erase(std::size_t at);
  ProgramId rebuilt();

  const Signature& signature(std::size_t at) const { return trace_.signature(items_[at].op.signature); }
  template <class Change>
  void change(std::size_t at, Change change);
  std::string text_of(std::size_t at) const;
  [[noreturn]] void does_not_fit(std::size_t at, std::string_view wanted) const;
  RankRecord& record() { return trace_.ranks[record_]; }

  Trace& trace_;
  const Injection& injection_;
  std::size_t record_ = 0;
  std::vector<Item> items_;
};

void Editor::unroll_list() {
  const auto has_rank = [&](const RankRecord& r) { return r.rank == injection_.rank; };
  const auto found = std::find_if(trace_.ranks.begin(), trace_.ranks.end(), has_rank);
  if (found == trace_.ranks.end()) {
    throw RequestError(fmt::format("there is no rank {} to put the fault into", injection_.rank.value));
  }
  record_ = static_cast<std::size_t>(found - trace_.ranks.begin());
  const Program& program = trace_.program(record());
  if (length_of(program) > kMaxOps) throw Error("the program of this rank is too long to be changed");
  std::string refusal;
  const UnrolledProgram list = unroll(trace_, program, refusal);
  if (!refusal.empty()) throw Error(refusal);
  items_.reserve(list.ops.size());
  for (std::uint32_t i = 0; i < list.ops.size(); ++i) {
    items_.push_back({program.at(OpId(list.ops[i].row)), i, list.ops[i].target, list.ops[i].seq});
    if (list.ops[i].kind != OpKind::wait) items_.back().waits_for = kNoOp;
  }
}

std::size_t Editor::find_place() const {
  const OpPlace& place = injection_.place;
  if (place.group.empty()) {
    if (place.index < items_.size()) return place.index;
    throw RequestError(fmt::format("rank {} has {}, numbered from 0: there is no operation {}", injection_.rank.value,
                                   counted(items_.size(), "operation", "operations"), place.index));
  }
  const RankRecord& record = trace_.ranks[record_];
  for (std::size_t at = 0; at < items_.size(); ++at) {
    const Op& op = items_[at].op;
    if (!is_collective(signature(at).kind) || !op.comm_slot || items_[at].seq != place.index) continue;
    // A replica's own group has its number behind the name (virtual_ranks.h).
    const std::string_view name = trace_.text(trace_.communicator(record.comms[*op.comm_slot]).name);
    if (name == place.group || name.substr(0, name.rfind('@')) == place.group) return at;
  }
  throw RequestError(
      fmt::format("rank {} makes no collective {} of group {}", injection_.rank.value, place.index, place.group));
}

template <class Change>
void Editor::change(std::size_t at, Change change) {
  Signature changed = signature(at);
  change(changed);
  items_[at].op.signature = trace_.intern(std::move(changed));
}

std::string Editor::text_of(std::size_t at) const {
  const Op& op = items_[at].op;
  std::string text = fmt::format("operation {}, {}", items_[at].origin, name_of(signature(at).kind));
  if (items_[at].seq > 0) text += fmt::format(" {}", items_[at].seq);
  if (op.comm_slot) {
    text += fmt::format(" of {}", trace_.text(trace_.communicator(trace_.ranks[record_].comms[*op.comm_slot]).name));
  }
  return text;
}

void Editor::does_not_fit(std::size_t at, std::string_view wanted) const {
  throw RequestError(fmt::format("{} does not fit {} of rank {}: expected {}", name_of(injection_.fault), text_of(at),
                                 injection_.rank.value, wanted));
}

// With the waits for it.
void Editor::erase(std::size_t at) {
  const std::uint32_t origin = items_[at].origin;
  items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(at));
  std::erase_if(items_, [&](const Item& item) { return item.waits_for == origin; });
}

std::string Editor::swap(std::size_t at) {
  const auto is_call = [&](std::size_t i) { return is_collective(signature(i).kind) || is_p2p(signature(i).kind); };
  if (!is_call(at)) does_not_fit(at, "a collective, a send or a receive");
  std::size_t next = at + 1;
  while (next < items_.size() && !is_call(next)) ++next;
  if (next == items_.size()) does_not_fit(at, "another call behind it");
  std::string text = fmt::format("makes its {} before {}", text_of(next), text_of(at));
  std::swap(items_[at], items_[next]);
  return text;
}

std::string Editor::resize(std::size_t at) {
  if (!signature(at).count_in) does_not_fit(at, "a call with a count");
  const std::string before = text_of(at);
  const std::uint64_t count = injection_.value.value_or(2 * *signature(at).count_in + 1);
  change(at, [&](Signature& s) {
    const std::uint64_t old = *s.count_in;
    if (s.count_out) s.count_out = scaled(*s.count_out, old, count);
    s.count_in = count;
    s.shape_in.clear();
    s.shape_out.clear();
  });
  return fmt::format("makes its {} with {}", before, counted(count, "element", "elements"));
}

std::string Editor::reroot(std::size_t at) {
  if (!is_rooted(signature(at).kind) || !signature(at).peer_slot || !items_[at].op.comm_slot) {
    does_not_fit(at, "a collective with a root");
  }
  const auto& members = trace_.communicator(record().comms[*items_[at].op.comm_slot]).members;
  if (members.size() < 2) does_not_fit(at, "a group of two or more");
  const auto old = trace_.peer(record(), signature(at)).value_or(0);
  const auto next = static_cast<std::uint64_t>(old + 1) % members.size();
  const auto root = static_cast<std::int32_t>(injection_.value.value_or(next));
  const auto slot = static_cast<std::uint32_t>(record().peers.size());
  record().peers.push_back(root);
  change(at, [&](Signature& s) { s.peer_slot = slot; });
  return fmt::format("makes its {} with the root at position {} instead of {}", text_of(at), root, old);
}

void Editor::kill(std::size_t at) {
  items_.resize(at);
  Signature end;
  end.kind = OpKind::stop;
  end.stop_reason = StopReason::crash;
  end.name = trace_.strings.intern("killed by --inject");
  Item item;
  item.op.signature = trace_.intern(std::move(end));
  items_.push_back(item);
}

std::string Editor::edit(std::size_t at) {
  const std::string place = text_of(at);
  const OpKind kind = signature(at).kind;
  const bool brackets = kind == OpKind::group_begin || kind == OpKind::group_end;
  if (brackets && injection_.fault != InjectedFault::kill && injection_.fault != InjectedFault::delay) {
    does_not_fit(at, "an operation, not the begin or end of a group");
  }
  switch (injection_.fault) {
    case InjectedFault::skip: erase(at); return "leaves out its " + place;
    case InjectedFault::duplicate: {
      Item again = items_[at];
      again.origin = kNoOp;
      items_.insert(items_.begin() + static_cast<std::ptrdiff_t>(at), again);
      return fmt::format("makes its {} twice", place);
    }
    case InjectedFault::swap: return swap(at);
    case InjectedFault::resize: return resize(at);
    case InjectedFault::retype:
      if (signature(at).type_in == DataType::unknown) does_not_fit(at, "a call with a data type");
      change(at, [](Signature& s) {
        s.type_in = s.type_in == DataType::f64 ? DataType::f32 : DataType::f64;
        if (s.type_out != DataType::unknown) s.type_out = s.type_in;
      });
      return fmt::format("makes its {} with {} elements", place, name_of(signature(at).type_in));
    case InjectedFault::reroot: return reroot(at);
    case InjectedFault::kill: kill(at); return fmt::format("is killed before its {}", place);
    case InjectedFault::delay: return fmt::format("comes {} late to its {}", delay(at), place);
  }
  return "";
}

std::string Editor::delay(std::size_t at) {
  Signature pause;
  pause.kind = OpKind::delay;
  pause.compute_time = injection_.delay.value_or(kSecond);
  std::string length = format_duration(*pause.compute_time);
  Item item;
  item.op.signature = trace_.intern(std::move(pause));
  // What is posted together comes late together.
  std::size_t before = at;
  for (std::size_t i = 0, open = 0; i <= at; ++i) {
    if (signature(i).kind == OpKind::group_begin && open++ == 0) before = i;
    if (signature(i).kind == OpKind::group_end && i < at && --open == 0) before = at;
  }
  items_.insert(items_.begin() + static_cast<std::ptrdiff_t>(before), item);
  return length;
}

// Numbers the asynchronous operations anew, as waits name them.
ProgramId Editor::rebuilt() {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> handles;  // by origin
  for (const Item& item : items_) {
    if (trace_.signature(item.op.signature).async) {
      handles.emplace_back(item.origin, static_cast<std::uint32_t>(handles.size()));
    }
  }
  std::sort(handles.begin(), handles.end());
  Program program;
  program.reserve(items_.size());
  for (std::size_t at = 0; at < items_.size(); ++at) {
    if (signature(at).kind == OpKind::wait) {
      const auto handle = std::lower_bound(handles.begin(), handles.end(), std::pair(items_[at].waits_for, 0U));
      // Nothing was issued that it would wait for.
      if (items_[at].waits_for == kNoOp || handle == handles.end() || handle->first != items_[at].waits_for) continue;
      change(at, [&](Signature& s) { s.handle = handle->second; });
    }
    program.append(items_[at].op);
  }
  trace_.programs.push_back(std::move(program));
  return ProgramId(trace_.programs.size() - 1);
}

std::string Editor::run() {
  unroll_list();
  const std::string done = edit(find_place());
  record().program = rebuilt();
  return fmt::format("rank {} {}", injection_.rank.value, done);
}

}  // namespace

std::string_view name_of(InjectedFault fault) {
  return std::find_if(kNames.begin(), kNames.end(), [&](const auto& row) { return row.first == fault; })->second;
}

std::optional<InjectedFault> injected_fault_from(std::string_view name) {
  const auto at = std::find_if(kNames.begin(), kNames.end(), [&](const auto& row) { return row.second == name; });
  return at == kNames.end() ? std::nullopt : std::optional(at->first);
}

std::string inject(Trace& trace, const Injection& injection) { return Editor(trace, injection).run(); }

}  // namespace ddx::sim
