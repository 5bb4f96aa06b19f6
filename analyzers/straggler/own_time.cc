#include "analyzers/straggler/own_time.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/hash.h"

namespace ddx::analyzers {
namespace {

// What a member did since the call before.
struct Window {
  std::uint64_t shape = 0;  // equal for the same calls
  OwnTime time;
};

bool is_call(OpKind kind) { return is_collective(kind) || is_p2p(kind) || kind == OpKind::unknown; }

const Signature& signature_at(const JobView& job, const Program& program, std::uint32_t row) {
  return job.trace->signature(program.signature(row));
}

void add_shape(RowHash& shape, const Signature& signature) {
  shape.add(static_cast<std::uint64_t>(signature.kind));
  shape.add(signature.count_in.value_or(UINT64_MAX));
}

// The time that pieces of work cover together.
Nanos covered(std::vector<std::pair<Nanos, Nanos>>& pieces) {
  std::sort(pieces.begin(), pieces.end());
  Nanos sum = 0, until = INT64_MIN;
  for (const auto& [start, end] : pieces) {
    sum += std::max<Nanos>(0, end - std::max(start, until));
    until = std::max(until, end);
  }
  return sum;
}

// Of the computations between one call and another; nullopt where a time is missing. Who has another number of them
// there has another shape.
std::optional<Window> work_window(const JobView& job, const MemberView& member, const Call& before, const Call& call) {
  const Program& program = *member.program;
  RowHash shape;
  std::vector<std::pair<Nanos, Nanos>> pieces;
  for (std::uint32_t row = before.row; row <= call.row; ++row) {
    const Signature& signature = signature_at(job, program, row);
    if (is_call(signature.kind)) add_shape(shape, signature);
    if (signature.kind != OpKind::compute) continue;
    const auto start = plausible(program.start(row)), end = plausible(program.end(row));
    if (!start || !end || *end < *start) return std::nullopt;
    pieces.emplace_back(*start, *end);
  }
  shape.add(pieces.size());
  return Window{shape.value(), {&member, call.row, covered(pieces)}};
}

// Whether rows are in the order of a program that holds its computations and their times.
bool tells_work(const JobView& job, const MemberView& member) {
  if (!member.record->whole_program) return false;
  const Program& program = *member.program;
  for (std::uint32_t row = 0; row < program.size(); ++row) {
    if (signature_at(job, program, row).kind == OpKind::compute && program.start(row) && program.end(row)) return true;
  }
  return false;
}

// Outside of calls between the end of one and the start of another; nullopt where a time is missing.
std::optional<Window> device_window(const JobView& job, const MemberView& member, const Call& before,
                                    const Call& call) {
  const Program& program = *member.program;
  RowHash shape;
  std::optional<Nanos> busy_until;
  Nanos own = 0;
  for (std::uint32_t row = before.row; row <= call.row; ++row) {
    const Signature& signature = signature_at(job, program, row);
    if (!is_call(signature.kind)) continue;
    const auto start = plausible(program.start(row)), end = plausible(program.end(row));
    if (!start || !end || *end < *start) return std::nullopt;
    if (busy_until) own += std::max<Nanos>(0, *start - *busy_until);
    busy_until = std::max(busy_until.value_or(*end), *end);
    add_shape(shape, signature);
  }
  return Window{shape.value(), {&member, call.row, own}};
}

bool alone_between(const JobView& job, const MemberView& member, const Call& before, const Call& call) {
  for (std::uint32_t row = before.row + before.rows; row < call.row; ++row) {
    if (is_call(signature_at(job, *member.program, row).kind)) return false;
  }
  return true;
}

// The call, and the one before it by number and in the program.
struct CallPair {
  const Call* before = nullptr;
  const Call* call = nullptr;
};
std::optional<CallPair> pair_at(const MemberView& member, std::uint32_t seq) {
  const Call* call = member.call_at(seq);
  if (call == nullptr || call == member.calls.data()) return std::nullopt;
  const Call* before = call - 1;
  if (before->seq + 1 != call->seq || before->row >= call->row) return std::nullopt;
  return CallPair{before, call};
}

// Beyond this many times of one group the earliest calls are left out.
constexpr std::size_t kMostTimes = 4'000'000;

// Numbers that some member has, ascending; of very large groups the latest.
std::vector<std::uint32_t> numbers_of(const CallGroup& group) {
  std::vector<std::uint32_t> numbers, merged;
  for (const MemberView* member : group.members) {
    std::vector<std::uint32_t> own;
    own.reserve(member->calls.size());
    for (const Call& call : member->calls) own.push_back(call.seq);
    if (std::includes(numbers.begin(), numbers.end(), own.begin(), own.end())) continue;
    merged.clear();
    std::set_union(numbers.begin(), numbers.end(), own.begin(), own.end(), std::back_inserter(merged));
    numbers.swap(merged);
  }
  const std::size_t most = std::max<std::size_t>(64, kMostTimes / group.members.size());
  if (numbers.size() > most) numbers.erase(numbers.begin(), numbers.end() - static_cast<std::ptrdiff_t>(most));
  return numbers;
}

// Members that did the same, apart from those that did something else.
void add_alike(std::uint32_t seq, const std::vector<Window>& windows, Comparison& to) {
  std::map<std::uint64_t, std::size_t> stretch_of;
  std::vector<Stretch> stretches;
  for (const Window& window : windows) {
    const auto [at, fresh] = stretch_of.try_emplace(window.shape, stretches.size());
    if (fresh) stretches.push_back({seq, {}});
    stretches[at->second].times.push_back(window.time);
  }
  for (Stretch& stretch : stretches) {
    if (stretch.times.size() > 1) to.stretches.push_back(std::move(stretch));
  }
}

Comparison by_device(const JobView& job, const CallGroup& group, const std::vector<std::uint32_t>& numbers) {
  const bool by_work = std::all_of(group.members.begin(), group.members.end(),
                                   [&job](const MemberView* member) { return tells_work(job, *member); });
  const auto window_of = by_work ? work_window : device_window;
  Comparison comparison{&group, false, by_work, {}};
  for (const std::uint32_t seq : numbers) {
    std::vector<Window> windows;
    for (const MemberView* member : group.members) {
      const auto pair = pair_at(*member, seq);
      if (!pair) continue;
      if (const auto window = window_of(job, *member, *pair->before, *pair->call)) windows.push_back(*window);
    }
    add_alike(seq, windows, comparison);
  }
  return comparison;
}

// Since everybody had come to the call before; nullopt where somebody did not wait or did something else.
std::optional<Stretch> host_stretch(const JobView& job, const CallGroup& group, const std::vector<Nanos>& offsets,
                                    std::uint32_t seq) {
  Stretch stretch{seq, {}};
  Nanos all_came = INT64_MIN;
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    const MemberView& member = *group.members[i];
    const auto pair = pair_at(member, seq);
    if (!pair || !alone_between(job, member, *pair->before, *pair->call)) return std::nullopt;
    if (!synchronizes(signature_at(job, *member.program, pair->before->row).kind)) return std::nullopt;
    const auto came = plausible(member.program->issue(pair->before->row));
    const auto comes = plausible(member.program->issue(pair->call->row));
    if (!came || !comes) return std::nullopt;
    all_came = std::max(all_came, *came - offsets[i]);
    stretch.times.push_back({&member, pair->call->row, *comes - offsets[i]});
  }
  for (OwnTime& time : stretch.times) {
    time.own -= all_came;
    if (time.own < 0) return std::nullopt;
  }
  return stretch;
}

// All on one host, as their records say.
bool one_clock(const CallGroup& group) {
  const std::string& host = group.members.front()->record->host;
  return !host.empty() && std::all_of(group.members.begin(), group.members.end(),
                                      [&](const MemberView* member) { return member->record->host == host; });
}

Nanos median(std::vector<Nanos> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A clock that is ahead looks like a rank that is always late by as much. Takes off each member what it is later than
// the others typically, so that only what changes is left.
void remove_clocks(std::vector<Stretch>& stretches) {
  std::map<const MemberView*, std::vector<Nanos>> later;
  for (const Stretch& stretch : stretches) {
    std::vector<Nanos> all;
    for (const OwnTime& time : stretch.times) all.push_back(time.own);
    const Nanos middle = median(std::move(all));
    for (const OwnTime& time : stretch.times) later[time.member].push_back(time.own - middle);
  }
  std::map<const MemberView*, Nanos> typical;
  for (auto& [member, values] : later) typical[member] = median(std::move(values));
  for (Stretch& stretch : stretches) {
    for (OwnTime& time : stretch.times) time.own -= typical[time.member];
  }
}

Comparison by_host(const JobView& job, const CallGroup& group, const std::vector<Nanos>& offsets,
                   const std::vector<std::uint32_t>& numbers) {
  Comparison comparison{&group, true, false, {}};
  // Of two clocks neither can be told to be the wrong one.
  if (group.members.size() == 2 && !one_clock(group)) return comparison;
  for (const std::uint32_t seq : numbers) {
    if (auto stretch = host_stretch(job, group, offsets, seq)) comparison.stretches.push_back(std::move(*stretch));
  }
  if (!one_clock(group)) remove_clocks(comparison.stretches);
  return comparison;
}

}  // namespace

Comparison compare_own_time(const JobView& job, const CallGroup& group) {
  const std::vector<std::uint32_t> numbers = numbers_of(group);
  // A recorder's watchdog sees starts and ends only when it looks; times of issue are exact, if by one clock.
  const bool recorder = std::any_of(group.members.begin(), group.members.end(),
                                    [](const MemberView* member) { return member->record->snapshot; });
  const auto device = [&] { return by_device(job, group, numbers); };
  const auto host = [&] {
    const auto offsets = hosts_wait(job, group);
    return offsets ? by_host(job, group, *offsets, numbers) : Comparison{&group, true, false, {}};
  };
  const bool host_first = recorder && one_clock(group);
  Comparison comparison = host_first ? host() : device();
  if (comparison.stretches.empty()) comparison = host_first ? device() : host();
  return comparison;
}

}  // namespace ddx::analyzers
