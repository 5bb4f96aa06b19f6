#include "cli/report/inventory.h"

#include <algorithm>
#include <array>
#include <limits>

namespace ddx::cli {
namespace {

// In the order of LogFact.
constexpr std::array<std::string_view, 36> kKinds{
    "watchdog_timeout",     "watchdog_status",     "heartbeat_stuck",
    "store_barrier",        "store_join",          "wrapper_mismatch",
    "barrier_device_guess", "comm_init",           "nccl_warning",
    "device_duplicate",     "bootstrap_duplicate", "bootstrap_size_mismatch",
    "version_mismatch",     "library_version",     "return_code",
    "net_adapters",         "net_adapter_error",   "net_channel",
    "net_completion_error", "net_socket_error",    "name_resolution_error",
    "shared_memory_error",  "tuning_choice",       "process_end",
    "elastic_failure",      "attempt_start",       "tests_banner",
    "ras_communicator",     "idle_notice",         "progress_notice",
    "nan_notice",           "rank_address",        "host_stack",
    "told_absent",          "device_fault",        "port_taken"};
static_assert(kKinds.size() == std::variant_size_v<LogFact>, "a kind of log event has no name");

// What a program does on one of its communicator slots. Shared by all ranks that run the program.
struct SlotUse {
  std::map<OpKind, std::uint64_t> operations;
  std::map<OpState, std::uint64_t> states;
  std::optional<SeqRange> sequence;
};

std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<std::uint64_t>::max() : result;
}
std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? std::numeric_limits<std::uint64_t>::max() : result;
}

// How often each row runs: the product of the loops around it.
std::vector<std::uint64_t> repetitions(const Program& program) {
  std::vector<std::uint64_t> times(program.size(), 1);
  for (const Loop& loop : program.loops) {
    const std::size_t end = std::min<std::size_t>(loop.end, program.size());
    for (std::size_t row = loop.begin; row < end; ++row) times[row] = product(times[row], loop.count);
  }
  return times;
}

std::map<std::uint16_t, SlotUse> use_of(const Trace& trace, const Program& program) {
  std::map<std::uint16_t, SlotUse> slots;
  const bool loops = !program.loops.empty();
  const std::vector<std::uint64_t> times = loops ? repetitions(program) : std::vector<std::uint64_t>{};
  for (std::size_t row = 0; row < program.size(); ++row) {
    const auto slot = program.comm_slot(row);
    if (!slot) continue;
    const OpKind kind = trace.signature(program.signature(row)).kind;
    const std::uint64_t n = loops ? times[row] : 1;
    SlotUse& use = slots[*slot];
    use.operations[kind] = sum(use.operations[kind], n);
    use.states[program.state(row)] = sum(use.states[program.state(row)], n);
    const auto seq = program.seq(row);
    if (!seq || is_p2p(kind)) continue;
    if (!use.sequence) use.sequence = SeqRange{*seq, *seq};
    use.sequence->first = std::min(use.sequence->first, *seq);
    use.sequence->second = std::max(use.sequence->second, *seq);
  }
  return slots;
}

void add_use(GroupInventory& group, const SlotUse& use, std::optional<RankId> rank) {
  ++group.records;
  for (const auto& [kind, count] : use.operations) {
    std::uint64_t& all = group.operations[std::string(name_of(kind))];
    all = sum(all, count);
  }
  for (const auto& [state, count] : use.states) {
    std::uint64_t& all = group.states[std::string(name_of(state))];
    all = sum(all, count);
  }
  if (!rank) return;
  group.seen.insert(*rank);
  if (use.sequence) group.sequences[*use.sequence].insert(*rank);
}

std::vector<GroupInventory> groups_of(const Trace& trace) {
  std::vector<std::optional<std::map<std::uint16_t, SlotUse>>> uses(trace.programs.size());
  std::vector<GroupInventory> groups;
  for (const Communicator& comm : trace.communicators()) {
    GroupInventory& group = groups.emplace_back();
    group.name = trace.text(comm.name);
    group.description = trace.text(comm.description);
    group.members = RankSet(comm.members);
    if (!comm.members.empty()) {
      group.size = comm.members.size();
    } else if (comm.declared_size) {
      group.size = *comm.declared_size;
    }
  }
  for (const RankRecord& record : trace.ranks) {
    auto& use = uses[record.program.value];
    if (!use) use = use_of(trace, trace.program(record));
    for (std::size_t slot = 0; slot < record.comms.size(); ++slot) {
      const auto at = use->find(static_cast<std::uint16_t>(slot));
      add_use(groups[record.comms[slot].value], at == use->end() ? SlotUse{} : at->second, record.rank);
    }
  }
  std::stable_sort(groups.begin(), groups.end(), [](const GroupInventory& a, const GroupInventory& b) {
    return std::pair(a.name, a.members.values()) < std::pair(b.name, b.members.values());
  });
  return groups;
}

void count_records(const Evidence& evidence, Inventory& out) {
  RankSet seen;
  for (const RankRecord& record : evidence.trace.ranks) {
    ++out.records;
    if (!record.rank) {
      ++out.records_without_rank;
      continue;
    }
    const RankId rank = *record.rank;
    if (seen.contains(rank)) out.claimed_twice.insert(rank);
    seen.insert(rank);
    if (!record.host.empty()) out.hosts[record.host].insert(rank);
    if (!record.backend.empty()) out.backends[record.backend].insert(rank);
    if (!record.library_version.empty()) out.versions[record.library_version].insert(rank);
    if (record.head_lost) out.head_lost.insert(rank);
    if (record.tail_lost) out.tail_lost.insert(rank);
  }
}

void count_events(const Evidence& evidence, Inventory& out) {
  for (const LogEvent& event : evidence.events) {
    EventCount& kind = out.events[std::string(kind_of(event.fact))];
    ++kind.count;
    if (event.rank) kind.ranks.insert(*event.rank);
    if (event.rank && !event.host.empty()) out.hosts[event.host].insert(*event.rank);
  }
}

}  // namespace

std::string_view kind_of(const LogFact& fact) { return kKinds[fact.index()]; }

Inventory take_inventory(const Evidence& evidence) {
  Inventory out;
  out.report = make_report("info", evidence, {});
  for (const Input& input : evidence.inputs) {
    FormatCount& format = out.formats[input.format];
    ++format.files;
    format.ranks.insert(input.ranks);
  }
  count_records(evidence, out);
  count_events(evidence, out);
  out.groups = groups_of(evidence.trace);
  for (const GroupInventory& group : out.groups) {
    for (const auto& [kind, count] : group.operations) out.operations = sum(out.operations, count);
  }
  out.times = analyzers::break_down(evidence);
  return out;
}

}  // namespace ddx::cli
