#include "tests/support/random_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "tests/support/ops_text.h"

namespace ddx::testing {
namespace {

// Emits calls to all members of a group at once, which makes the order global.
class Generator {
 public:
  explicit Generator(const ProgramOptions& options) : options_(options), random_(options.seed) {}
  CallLists run();

 private:
  // One event of the pattern: the same each step.
  struct Event {
    enum class Kind { collective, pipeline, exchange, compute } kind = Kind::collective;
    std::vector<std::string> groups;  // a collective runs in each of them, one after the other
    Call call;
    bool async = false;
    bool backward = false;  // of a pipeline
  };

  void make_grid();
  void make_overlapping();
  std::vector<std::string> some_groups();
  Event event();
  Call collective();
  void emit(const Event& event, int step);
  void emit_collective(const Event& event, int step);
  void emit_pipeline(const Event& event, int step);
  void emit_exchange(const Event& event, int step);
  void wait_for_all(int step);
  std::uint64_t pick(std::uint64_t bound) { return draw(random_, bound); }
  std::uint64_t size() { return std::uint64_t{1} << pick(18) | pick(64); }
  DataType type() {
    static constexpr std::array kTypes{DataType::f32, DataType::bf16, DataType::f16, DataType::i64, DataType::u8};
    return kTypes[pick(kTypes.size())];
  }

  const ProgramOptions options_;
  std::mt19937_64 random_;
  CallLists lists_;
  std::map<std::string, std::vector<std::string>> dimensions_;  // "tp" -> tp0, tp1, ...
  int next_async_ = 1;
};

CallLists Generator::run() {
  lists_.world = options_.world > 0 ? options_.world : 2 + static_cast<int>(pick(31));
  lists_.ranks.resize(static_cast<std::size_t>(lists_.world));
  make_grid();
  if (options_.overlapping_groups) make_overlapping();
  const int steps = options_.steps > 0 ? options_.steps : 2 + static_cast<int>(pick(7));
  const int calls = options_.calls_a_step > 0 ? options_.calls_a_step : 3 + static_cast<int>(pick(8));

  Event start;
  start.groups = {"pg0"};
  start.call = {OpKind::broadcast, "pg0", type(), size(), RedOp::unknown, static_cast<int>(pick(2)), 0, {}, -1};
  emit(start, -1);
  std::vector<Event> pattern;
  pattern.reserve(static_cast<std::size_t>(calls));
  for (int i = 0; i < calls; ++i) pattern.push_back(event());
  for (int step = 0; step < steps; ++step) {
    for (const Event& each : pattern) emit(each, step);
    wait_for_all(step);
  }
  Event end;
  end.groups = {"pg0"};
  end.call.group = "pg0";
  emit(end, -1);
  return std::move(lists_);
}

// Ranks in a grid of pp x dp x tp, tp fastest.
void Generator::make_grid() {
  const auto divisor_of = [this](int n) {
    std::vector<int> divisors;
    divisors.reserve(static_cast<std::size_t>(n));
    for (int d = 1; d <= n; ++d) {
      if (n % d == 0) divisors.push_back(d);
    }
    return divisors[pick(divisors.size())];
  };
  const int tp = divisor_of(lists_.world);
  const int dp = divisor_of(lists_.world / tp);
  const int pp = lists_.world / tp / dp;
  const auto add = [this](const std::string& dimension, int stride, int length, int first) {
    if (length < 2) return;
    auto& names = dimensions_[dimension];
    const std::string name = fmt::format("{}{}", dimension, names.size());
    for (int i = 0; i < length; ++i) lists_.groups[name].push_back(first + i * stride);
    names.push_back(name);
  };
  for (int first = 0; first < lists_.world; first += tp) add("tp", 1, tp, first);
  for (int block = 0; block < pp; ++block) {
    for (int t = 0; t < tp; ++t) add("dp", tp, dp, block * tp * dp + t);
  }
  for (int first = 0; first < tp * dp; ++first) add("pp", tp * dp, pp, first);
  dimensions_["pg0"] = {"pg0"};
}

void Generator::make_overlapping() {
  for (std::uint64_t i = 0; i < pick(3) && lists_.world > 2; ++i) {
    std::vector<int> members;
    for (int rank = 0; rank < lists_.world; ++rank) {
      if (pick(2) == 0) members.push_back(rank);
    }
    if (members.size() < 2) continue;
    // Members need not be in the order of their ranks.
    if (pick(3) == 0) std::reverse(members.begin(), members.end());
    const std::string name = fmt::format("mix{}", i);
    lists_.groups[name] = members;
    dimensions_[name] = {name};
  }
}

std::vector<std::string> Generator::some_groups() {
  auto at = dimensions_.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(pick(dimensions_.size())));
  return at->second;
}

Call Generator::collective() {
  static constexpr std::array kKinds{OpKind::all_reduce, OpKind::all_reduce, OpKind::all_gather,
                                     OpKind::all_gather, OpKind::broadcast,  OpKind::reduce_scatter,
                                     OpKind::reduce,     OpKind::all_to_all, OpKind::barrier};
  Call call;
  call.kind = kKinds[pick(kKinds.size())];
  if (call.kind == OpKind::barrier) return call;
  call.type = type();
  call.count = size();
  if (call.kind == OpKind::all_reduce || call.kind == OpKind::reduce || call.kind == OpKind::reduce_scatter) {
    call.redop = pick(4) == 0 ? RedOp::max : RedOp::sum;
  }
  return call;
}

Generator::Event Generator::event() {
  Event event;
  event.groups = some_groups();
  event.call = collective();
  event.async = options_.async && event.call.kind != OpKind::barrier && pick(5) == 0;
  if (pick(8) == 0) event.kind = Event::Kind::compute;
  if (!options_.point_to_point || pick(3) != 0) return event;
  event.kind = pick(2) == 0 ? Event::Kind::pipeline : Event::Kind::exchange;
  event.backward = pick(2) == 0;
  event.call = {OpKind::send, "", type(), size(), RedOp::unknown, -1, 0, {}, -1};
  return event;
}

void Generator::emit(const Event& event, int step) {
  switch (event.kind) {
    case Event::Kind::collective: return emit_collective(event, step);
    case Event::Kind::pipeline: return emit_pipeline(event, step);
    case Event::Kind::exchange: return emit_exchange(event, step);
    case Event::Kind::compute:
      for (auto& list : lists_.ranks) {
        Call call;
        call.kind = OpKind::compute;
        call.step = step;
        list.push_back(call);
      }
  }
}

void Generator::emit_collective(const Event& event, int step) {
  for (const std::string& group : event.groups) {
    const std::vector<int> members = lists_.members(group);
    Call call = event.call;
    call.group = group;
    call.step = step;
    if (event.async) call.async_id = next_async_++;
    if (is_rooted(call.kind)) call.peer = members[static_cast<std::size_t>(std::max(call.peer, 0)) % members.size()];
    if (call.kind == OpKind::reduce_scatter || call.kind == OpKind::all_to_all) call.count *= members.size();
    for (const int rank : members) lists_.ranks[static_cast<std::size_t>(rank)].push_back(call);
  }
}

// Each stage hands on to the next: single sends and receives.
void Generator::emit_pipeline(const Event& event, int step) {
  for (const std::string& group : event.groups) {
    std::vector<int> stages = lists_.members(group);
    if (event.backward) std::reverse(stages.begin(), stages.end());
    for (std::size_t i = 0; i + 1 < stages.size(); ++i) {
      Call call = event.call;
      call.group = group;
      call.step = step;
      call.peer = stages[i + 1];
      lists_.ranks[static_cast<std::size_t>(stages[i])].push_back(call);
      call.kind = OpKind::recv;
      call.peer = stages[i];
      lists_.ranks[static_cast<std::size_t>(stages[i + 1])].push_back(call);
    }
  }
}

// A ring: each member sends to the next and receives from the one before, in one group of calls.
void Generator::emit_exchange(const Event& event, int step) {
  for (const std::string& group : event.groups) {
    const std::vector<int> members = lists_.members(group);
    for (std::size_t i = 0; i < members.size(); ++i) {
      auto& list = lists_.ranks[static_cast<std::size_t>(members[i])];
      Call call;
      call.step = step;
      call.kind = OpKind::group_begin;
      list.push_back(call);
      call = event.call;
      call.group = group;
      call.step = step;
      call.peer = members[(i + 1) % members.size()];
      list.push_back(call);
      call.kind = OpKind::recv;
      call.peer = members[(i + members.size() - 1) % members.size()];
      list.push_back(call);
      call = {};
      call.step = step;
      call.kind = OpKind::group_end;
      list.push_back(call);
    }
  }
}

void Generator::wait_for_all(int step) {
  for (auto& list : lists_.ranks) {
    std::set<int> open;
    for (const Call& call : list) {
      if (call.async_id == 0) continue;
      call.kind == OpKind::wait ? void(open.erase(call.async_id)) : void(open.insert(call.async_id));
    }
    for (const int id : open) {
      Call call;
      call.kind = OpKind::wait;
      call.async_id = id;
      call.step = step;
      list.push_back(call);
    }
  }
}

std::string call_text(const Call& call, const std::set<int>& async_ids) {
  switch (call.kind) {
    case OpKind::compute: return "compute 100us";
    case OpKind::group_begin:
    case OpKind::group_end: return std::string(name_of(call.kind));
    case OpKind::stop: return fmt::format("{} \"injected\"", name_of(call.stop));
    // The call that it waited for may have fallen to a fault.
    case OpKind::wait:
      return async_ids.contains(call.async_id) ? fmt::format("wait h{}", call.async_id) : "compute 0ns";
    default: break;
  }
  std::string text(name_of(call.kind));
  if (call.kind != OpKind::barrier) text += fmt::format(" {} {}", name_of(call.type), call.count);
  if (is_p2p(call.kind)) text += fmt::format(" {} {}", call.kind == OpKind::send ? "to" : "from", call.peer);
  if (is_rooted(call.kind)) text += fmt::format(" root={}", call.peer);
  if (call.redop != RedOp::unknown) text += fmt::format(" redop={}", name_of(call.redop));
  if (call.async_id != 0) text += fmt::format(" async=h{}", call.async_id);
  return text + " " + call.group;
}

}  // namespace

std::vector<int> CallLists::members(const std::string& group) const {
  if (const auto at = groups.find(group); at != groups.end()) return at->second;
  std::vector<int> all;
  all.reserve(static_cast<std::size_t>(world));
  for (int rank = 0; rank < world; ++rank) all.push_back(rank);
  return all;
}

std::string ops_text_of(const CallLists& lists) {
  std::string text = fmt::format("world {}\n", lists.world);
  for (const auto& [name, members] : lists.groups) text += fmt::format("pg {} = {}\n", name, fmt::join(members, ","));
  for (std::size_t rank = 0; rank < lists.ranks.size(); ++rank) {
    std::set<int> async_ids;
    for (const Call& call : lists.ranks[rank]) {
      if (call.kind != OpKind::wait && call.async_id != 0) async_ids.insert(call.async_id);
    }
    for (const Call& call : lists.ranks[rank]) text += fmt::format("{} {}\n", rank, call_text(call, async_ids));
  }
  return text;
}

Trace trace_of(const CallLists& lists) { return trace_of(ops_text_of(lists)); }

CallLists random_program(const ProgramOptions& options) { return Generator(options).run(); }

}  // namespace ddx::testing
