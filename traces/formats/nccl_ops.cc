#include "traces/formats/nccl_ops.h"

#include <algorithm>
#include <array>
#include <set>

#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

// More processes in one file are no job's.
constexpr std::size_t kMaxProcesses = 1U << 18;
constexpr std::size_t kMaxComms = 0xfffe;  // what a slot of an Op can count
constexpr int kMaxSplitDepth = 16;
// No host has more: a process that names more is taken for one rank.
constexpr std::size_t kMaxDevices = 256;

struct OpName {
  std::string_view name;
  OpKind kind;
};
constexpr std::array kOpNames{
    OpName{"AllReduce", OpKind::all_reduce},
    OpName{"AllGather", OpKind::all_gather},
    OpName{"ReduceScatter", OpKind::reduce_scatter},
    OpName{"Broadcast", OpKind::broadcast},
    OpName{"Reduce", OpKind::reduce},
    OpName{"Send", OpKind::send},
    OpName{"Recv", OpKind::recv},
    OpName{"AlltoAll", OpKind::all_to_all},
    OpName{"AllToAll", OpKind::all_to_all},
    OpName{"Gather", OpKind::gather},
    OpName{"Scatter", OpKind::scatter},
};

OpKind kind_of(std::string_view name) {
  for (const OpName& known : kOpNames) {
    if (known.name == name) return known.kind;
  }
  return OpKind::unknown;
}

DataType type_of(std::int64_t code) {
  static constexpr std::array kTypes{DataType::i8,  DataType::u8,   DataType::i32,    DataType::u32,
                                     DataType::i64, DataType::u64,  DataType::f16,    DataType::f32,
                                     DataType::f64, DataType::bf16, DataType::f8e4m3, DataType::f8e5m2};
  if (code < 0 || code >= static_cast<std::int64_t>(kTypes.size())) return DataType::unknown;
  return kTypes[static_cast<std::size_t>(code)];
}

RedOp redop_of(std::int64_t code) {
  static constexpr std::array kOps{RedOp::sum, RedOp::prod, RedOp::max, RedOp::min, RedOp::avg};
  if (code < 0) return RedOp::unknown;
  return code < static_cast<std::int64_t>(kOps.size()) ? kOps[static_cast<std::size_t>(code)] : RedOp::user;
}

// The fields of one line, as printed.
struct OpLine {
  std::string_view name;
  std::uint64_t op_count = 0;
  std::uint64_t count = 0;
  std::int64_t type = -1;
  std::int64_t redop = -1;
  std::int64_t root = -1;
  std::uint64_t comm = 0;
  std::uint32_t nranks = 0;
  std::optional<std::uint64_t> stream;
  std::optional<std::int64_t> global_rank;
};

// Takes fields in the order in which NCCL prints them; a field that is not there leaves the rest findable.
class Fields {
 public:
  explicit Fields(std::string_view text) : rest_(text) {}
  std::optional<std::string_view> find(std::string_view key) {
    const std::size_t at = rest_.find(key);
    if (at == std::string_view::npos) return std::nullopt;
    rest_.remove_prefix(at + key.size());
    return rest_;
  }
  std::optional<std::int64_t> number(std::string_view key) {
    const auto text = find(key);
    return text ? number_at(*text) : std::nullopt;
  }

 private:
  std::string_view rest_;
};

std::optional<OpLine> parse_op(std::string_view message) {
  static constexpr std::string_view kMark = ": opCount ";
  const std::size_t colon = message.find(kMark);
  if (colon == std::string_view::npos || colon == 0 || colon > 32) return std::nullopt;
  OpLine op;
  op.name = message.substr(0, colon);
  Fields fields(message.substr(colon + kMark.size() - 1));
  const auto op_count = hex_at(message.substr(colon + kMark.size()));
  const auto count = fields.number(" count ");
  op.type = fields.number(" datatype ").value_or(-1);
  op.redop = fields.number(" op ").value_or(-1);
  op.root = fields.number(" root ").value_or(-1);
  const auto comm_text = fields.find(" comm ");
  const auto comm = comm_text ? hex_at(*comm_text) : std::nullopt;
  // A line that was cut before its communicator says nothing that can be matched.
  if (!op_count || !count || *count < 0 || !comm) return std::nullopt;
  op.op_count = *op_count;
  op.count = static_cast<std::uint64_t>(*count);
  op.comm = *comm;
  const auto nranks = fields.number("[nranks=");
  if (nranks && *nranks > 0 && *nranks <= INT32_MAX) op.nranks = static_cast<std::uint32_t>(*nranks);
  if (const auto stream = fields.find(" stream ")) op.stream = hex_at(*stream);
  op.global_rank = fields.number(" globalrank ");
  return op;
}

std::optional<std::uint64_t> times(std::uint64_t count, std::uint32_t nranks) {
  if (nranks == 0 || count > UINT64_MAX / nranks) return std::nullopt;
  return count * nranks;
}

// NCCL prints one count: of an all_gather and a gather what a rank sends, of a reduce_scatter and a scatter what it
// receives, of an all_to_all what goes to each peer.
void set_counts(const OpLine& line, std::uint32_t nranks, Signature& signature) {
  const auto all = times(line.count, nranks);
  switch (signature.kind) {
    case OpKind::all_gather:
    case OpKind::gather:
      signature.count_in = line.count;
      signature.count_out = all;
      break;
    case OpKind::reduce_scatter:
    case OpKind::scatter:
      signature.count_in = all;
      signature.count_out = line.count;
      break;
    case OpKind::all_to_all:
      signature.count_in = all;
      signature.count_out = all;
      break;
    case OpKind::send: signature.count_in = line.count; break;
    case OpKind::recv: signature.count_out = line.count; break;
    default:
      signature.count_in = line.count;
      signature.count_out = line.count;
      break;
  }
}

bool reduces(OpKind kind) {
  return kind == OpKind::all_reduce || kind == OpKind::reduce_scatter || kind == OpKind::reduce;
}

}  // namespace

NcclOps::NcclOps(Evidence& out, const ImportOptions& options) : out_(out), max_ops_(options.max_ops_per_file) {}

NcclOps::Process* NcclOps::process_of(const NcclWriter& writer, std::optional<RankId> rank) {
  Process* process = nullptr;
  if (last_ < processes_.size() && processes_[last_].pid == writer.pid && processes_[last_].host == writer.host) {
    process = &processes_[last_];
  } else {
    std::string name = printable(writer.host, 255) + " " + std::to_string(writer.pid);
    auto found = by_name_.find(name);
    if (found == by_name_.end()) {
      if (processes_.size() >= kMaxProcesses) {
        out_.diagnostics.count("nccl_log.too_many_processes", DiagnosticSeverity::data_loss,
                               out_.inputs.front().path + ": more processes than any job has in one log");
        return nullptr;
      }
      processes_.emplace_back();
      processes_.back().host = printable(writer.host, 255);
      processes_.back().pid = writer.pid;
      found = by_name_.emplace(std::move(name), processes_.size() - 1).first;
    }
    last_ = found->second;
    process = &processes_[last_];
  }
  if (rank && !process->stated) process->stated = rank;
  if (writer.device && process->devices.size() < kMaxDevices &&
      std::find(process->devices.begin(), process->devices.end(), *writer.device) == process->devices.end()) {
    process->devices.push_back(*writer.device);
  }
  return process;
}

std::optional<std::size_t> NcclOps::new_slot(Process& process, std::uint64_t pointer) {
  if (process.comms.size() >= kMaxComms) {
    out_.diagnostics.count("nccl_log.too_many_comms", DiagnosticSeverity::data_loss,
                           out_.inputs.front().path + ": a process with more communicators than ddx can tell apart; " +
                               "what it calls on the others is not read");
    return std::nullopt;
  }
  process.comms.emplace_back();
  process.by_pointer[pointer] = process.comms.size() - 1;
  return process.comms.size() - 1;
}

std::optional<std::size_t> NcclOps::slot_of(Process& process, std::uint64_t pointer, std::uint32_t nranks) {
  const auto found = process.by_pointer.find(pointer);
  const auto slot = found != process.by_pointer.end() ? found->second : new_slot(process, pointer);
  if (!slot) return std::nullopt;
  Comm& comm = process.comms[*slot];
  if (comm.nranks == 0) comm.nranks = nranks;
  if (!comm.used) {
    comm.used = true;
    comm.ordinal = process.used_by_size[comm.nranks]++;
  }
  return slot;
}

void NcclOps::add_comm(const NcclWriter& writer, std::optional<RankId> rank, const CommInit& init) {
  const auto pointer = hex_at(init.comm);
  if (!pointer || init.nranks <= 0 || init.nranks > INT32_MAX) return;
  Process* process = process_of(writer, rank);
  if (process == nullptr) return;
  auto found = process->by_pointer.find(*pointer);
  // START and COMPLETE speak of one communicator; another id, or a START behind operations, reuses freed memory.
  if (found != process->by_pointer.end()) {
    const Comm& old = process->comms[found->second];
    const bool same = old.id == init.comm_id && (!old.rank || *old.rank == static_cast<std::uint32_t>(init.rank));
    if ((!old.id.empty() && !same) || (old.used && !init.complete)) found = process->by_pointer.end();
  }
  const auto slot = found != process->by_pointer.end() ? found->second : new_slot(*process, *pointer);
  if (!slot) return;
  const bool fresh = found == process->by_pointer.end();
  std::optional<std::size_t> parent;
  if (const auto parent_pointer = hex_at(init.parent)) {
    const auto at = process->by_pointer.find(*parent_pointer);
    if (at != process->by_pointer.end() && at->second != *slot) parent = at->second;
  }
  Comm& comm = process->comms[*slot];
  comm.id = printable(init.comm_id, 64);
  comm.nranks = static_cast<std::uint32_t>(init.nranks);
  if (init.rank >= 0 && init.rank < init.nranks) comm.rank = static_cast<std::uint32_t>(init.rank);
  if (init.cuda_device) comm.device = init.cuda_device;
  if (!init.parent.empty()) {
    comm.color = init.color;
    comm.child_count = init.child_count;
    if (fresh) {
      comm.parent = parent;
      if (parent && !comm.child_count) comm.child_count = process->comms[*parent].children++;
    }
  }
}

bool NcclOps::add_op(const LogLine& line, const NcclWriter& writer, std::optional<RankId> rank,
                     std::string_view message) {
  const auto parsed = parse_op(message);
  if (!parsed) return false;
  const std::string& path = out_.inputs.front().path;
  if (ops_ >= max_ops_) {
    out_.diagnostics.count("nccl_log.too_many_ops", DiagnosticSeverity::data_loss,
                           path + ":" + std::to_string(line.number) + ": more operations than ddx keeps of one file");
    return true;
  }
  if (parsed->global_rank && *parsed->global_rank >= 0 && *parsed->global_rank <= INT32_MAX) {
    rank = RankId(*parsed->global_rank);
  }
  Process* process = process_of(writer, rank);
  const auto slot = process != nullptr ? slot_of(*process, parsed->comm, parsed->nranks) : std::nullopt;
  if (!slot) return true;
  Comm& comm = process->comms[*slot];
  if (!comm.rank && comm.device != writer.device) {
    if (comm.device) comm.mixed = true;
    if (!comm.device) comm.device = writer.device;
  }

  Signature signature;
  signature.kind = kind_of(parsed->name);
  signature.type_in = signature.type_out = type_of(parsed->type);
  signature.name = out_.trace.strings.intern(printable(parsed->name, 32));
  if (reduces(signature.kind)) signature.redop = redop_of(parsed->redop);
  set_counts(*parsed, comm.nranks, signature);
  if (parsed->stream) {
    const auto number = static_cast<std::uint32_t>(process->streams.size());
    signature.stream = process->streams.try_emplace(*parsed->stream, number).first->second;
  }
  if ((is_rooted(signature.kind) || is_p2p(signature.kind)) && parsed->root >= INT32_MIN && parsed->root <= INT32_MAX) {
    const auto peer = static_cast<std::int32_t>(parsed->root);
    const auto number = static_cast<std::uint32_t>(process->peers.size());
    const auto [at, added] = process->peer_slots.try_emplace(peer, number);
    if (added) process->peers.push_back(peer);
    signature.peer_slot = at->second;
  }

  Op op;
  op.signature = out_.trace.intern(signature);
  op.comm_slot = static_cast<std::uint16_t>(*slot);
  if (parsed->op_count <= 0xfffffffeU) {
    op.seq = static_cast<std::uint32_t>(parsed->op_count);
  } else {
    out_.diagnostics.count("nccl_log.wide_op_count", DiagnosticSeverity::notice,
                           path + ":" + std::to_string(line.number) + ": opCount beyond 32 bits, left out");
  }
  if (line.time && !line.time_of_day) op.issue = line.time;
  if (process->program.size() == 0 && !process->waiting.any) process->attempt = attempt_;
  if (parsed->op_count > 0 && !comm.rank && !comm.begins_late && comm.first_op) comm.begins_late = true;
  comm.first_op = false;
  if (process->waiting.any && process->waiting.op.comm_slot == op.comm_slot &&
      process->waiting.count == parsed->op_count) {
    if (!process->waiting.op.group) process->waiting.op.group = process->groups++;
    op.group = process->waiting.op.group;
  }
  flush(*process);
  process->waiting = {op, parsed->op_count, true};
  ++ops_;
  return true;
}

void NcclOps::flush(Process& process) {
  if (process.waiting.any) process.program.append(process.waiting.op);
  process.waiting.any = false;
}

// One process, several ranks: it holds two ranks of one communicator, or (without INIT lines) each of its communicators
// is used under a device of its own.
bool NcclOps::drives_several(const Process& process) {
  std::map<std::string, const Comm*> first;
  bool any_rank = false;
  bool fixed = true;
  bool several = false;
  std::set<std::optional<std::int64_t>> devices;
  for (const Comm& comm : process.comms) {
    any_rank = any_rank || comm.rank;
    fixed = fixed && !comm.mixed && comm.nranks == process.comms.front().nranks;
    devices.insert(comm.device);
    if (!comm.rank) continue;
    // Old versions print no id: then ranks of one size on different devices are those of one communicator.
    const auto [at, added] = first.try_emplace(comm.id.empty() ? std::to_string(comm.nranks) : comm.id, &comm);
    const bool other_rank = !added && *at->second->rank != *comm.rank;
    several = several || (other_rank && (!comm.id.empty() || at->second->device != comm.device));
  }
  if (devices.size() > kMaxDevices) {
    out_.diagnostics.count("nccl_log.too_many_devices", DiagnosticSeverity::data_loss,
                           out_.inputs.front().path + ": process " + std::to_string(process.pid) +
                               " names more devices than a host has; it is read as one rank");
    return false;
  }
  if (several) return true;
  if (any_rank || !fixed || process.comms.empty() || devices.size() < 2) return false;
  return process.comms.front().nranks >= devices.size() && process.comms.size() == devices.size();
}

// The order of use, within each device, so that each rank counts its own communicators.
void NcclOps::number_by_device(Process& process) {
  std::map<std::pair<std::optional<std::int64_t>, std::uint32_t>, std::uint32_t> used;
  for (Comm& comm : process.comms) comm.ordinal = used[{comm.device, comm.nranks}]++;
}

std::vector<NcclOps::Part> NcclOps::parts() {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    Process& process = processes_[i];
    if (process.comms.empty()) continue;
    if (!drives_several(process)) {
      Part& whole = parts.emplace_back();
      whole.process = i;
      for (std::size_t slot = 0; slot < process.comms.size(); ++slot) whole.slots.push_back(slot);
      continue;
    }
    number_by_device(process);
    std::map<std::int64_t, std::vector<std::size_t>> by_device;
    for (std::size_t slot = 0; slot < process.comms.size(); ++slot) {
      if (process.comms[slot].device) by_device[*process.comms[slot].device].push_back(slot);
    }
    for (auto& [device, slots] : by_device) parts.push_back({i, device, std::move(slots), std::nullopt, false});
  }
  return parts;
}

// The position in the first of the largest communicators.
std::optional<RankId> NcclOps::init_rank(const Part& part) const {
  const Comm* best = nullptr;
  for (const std::size_t slot : part.slots) {
    const Comm& comm = processes_[part.process].comms[slot];
    if (comm.rank && (best == nullptr || comm.nranks > best->nranks)) best = &comm;
  }
  return best == nullptr ? std::nullopt : std::optional(RankId(std::int64_t{*best->rank}));
}

// What a launcher or a file name states comes first: the largest communicator of the file need not be the job's. But
// where it says the same of processes that cannot be one rank, it speaks of something else (a node, a whole job).
void NcclOps::settle_ranks(std::vector<Part>& parts) const {
  std::map<RankId, const Part*> first;
  std::set<RankId> shared;
  for (Part& part : parts) {
    part.rank = init_rank(part);
    const Process& process = processes_[part.process];
    if (!process.stated || part.device) continue;
    const auto [at, added] = first.try_emplace(*process.stated, &part);
    if (added) continue;
    const Process& other = processes_[at->second->process];
    const auto theirs = at->second->rank;
    if (part.rank && theirs ? *part.rank != *theirs : process.devices != other.devices) shared.insert(*process.stated);
  }
  for (Part& part : parts) {
    const Process& process = processes_[part.process];
    if (process.stated && !part.device && !shared.contains(*process.stated)) part.rank = process.stated;
  }
}

// The devices of one host in the order of ranks: a guess that most launchers make true.
void NcclOps::guess_by_device(std::vector<Part>& parts) const {
  if (parts.empty() || parts.size() > 1024) return;
  std::set<std::int64_t> devices;
  std::uint32_t nranks = 0;
  for (const Part& part : parts) {
    const Process& process = processes_[part.process];
    if (part.rank || process.host != processes_[parts.front().process].host) return;
    for (const Comm& comm : process.comms) nranks = std::max(nranks, comm.nranks);
    if (!part.device && process.devices.size() != 1) return;
    const std::int64_t device = part.device ? *part.device : process.devices.front();
    if (device < 0 || !devices.insert(device).second) return;
  }
  const bool all = parts.size() == nranks;
  // A few may be missing (they may be what is looked for) where one host plainly holds the whole job.
  const bool most = nranks <= 8 && parts.size() >= 2 && parts.size() * 2 > nranks;
  if ((!all && !most) || *devices.rbegin() >= std::int64_t{nranks}) return;
  for (Part& part : parts) {
    part.rank = RankId(part.device ? *part.device : processes_[part.process].devices.front());
    part.guessed = true;
  }
}

// An identity that is the same on every rank: commId; of a split that of its parent, the number of the split, and the
// colour, which is what NCCL's own hash is made of; else the order of first use among those of one size.
std::string NcclOps::name_of(const Process& process, std::size_t slot, bool& synthesized, int depth) const {
  const Comm& comm = process.comms[slot];
  if (!comm.id.empty()) return comm.id;
  if (comm.parent && comm.child_count && comm.color && depth < kMaxSplitDepth) {
    return name_of(process, *comm.parent, synthesized, depth + 1) + "/split" + std::to_string(*comm.child_count) +
           "/color" + std::to_string(*comm.color);
  }
  synthesized = true;
  return "comm of " + std::to_string(comm.nranks) + " #" + std::to_string(comm.ordinal);
}

NcclOps::Seen NcclOps::seen(const Process& process, std::size_t slot) const {
  Seen seen;
  const Comm& comm = process.comms[slot];
  seen.name = name_of(process, slot, seen.synthesized, 0);
  seen.nranks = comm.nranks;
  seen.position = comm.rank;
  return seen;
}

NcclOps::Memberships NcclOps::memberships(const std::vector<Part>& parts) const {
  Memberships all;
  for (const Part& part : parts) {
    if (!part.rank) continue;
    const Process& process = processes_[part.process];
    for (const std::size_t slot : part.slots) {
      const Seen comm = seen(process, slot);
      Membership& membership = all[{comm.name, comm.nranks}];
      if (!comm.position) {
        membership.unplaced.push_back(*part.rank);
        continue;
      }
      const auto [at, added] = membership.by_position.try_emplace(*comm.position, *part.rank);
      membership.conflict = membership.conflict || (!added && at->second != *part.rank);
    }
  }
  // The list of members is known only where this file holds them all.
  for (auto& [key, membership] : all) {
    const std::uint32_t nranks = key.second;
    if (membership.by_position.empty()) {
      // Without INIT lines positions are unknown; ranks in order is how frameworks number a group.
      const RankSet members(std::move(membership.unplaced));
      if (members.size() == nranks) membership.members = members.values();
    } else if (membership.unplaced.empty() && !membership.conflict && membership.by_position.size() == nranks) {
      for (const auto& [at, member] : membership.by_position) membership.members.push_back(member);
    }
  }
  return all;
}

CommId NcclOps::intern_comm(const Seen& seen, std::vector<RankId> members) {
  Communicator communicator;
  communicator.name = out_.trace.strings.intern(seen.name);
  communicator.synthesized = seen.synthesized;
  if (seen.nranks > 0) communicator.declared_size = seen.nranks;
  communicator.members = std::move(members);
  return out_.trace.intern(communicator);
}

std::vector<Program> NcclOps::take_programs(const std::vector<Part>& parts, std::size_t first) {
  Process& process = processes_[parts[first].process];
  std::vector<Program> programs;
  if (!parts[first].device) {
    programs.push_back(std::move(process.program));
    return programs;
  }
  // By slot of the process: whose it is, and its slot there.
  constexpr std::size_t kNobody = SIZE_MAX;
  std::vector<std::pair<std::size_t, std::uint16_t>> place(process.comms.size(), {kNobody, 0});
  for (std::size_t i = first; i < parts.size() && parts[i].process == parts[first].process; ++i) {
    for (std::size_t at = 0; at < parts[i].slots.size(); ++at) {
      place[parts[i].slots[at]] = {programs.size(), static_cast<std::uint16_t>(at)};
    }
    programs.emplace_back();
  }
  for (std::size_t row = 0; row < process.program.size(); ++row) {
    Op op = process.program.at(OpId(row));
    if (!op.comm_slot || place[*op.comm_slot].first == kNobody) continue;
    const auto [owner, slot] = place[*op.comm_slot];
    op.comm_slot = slot;
    programs[owner].append(op);
  }
  return programs;
}

void NcclOps::write_record(const Part& part, Memberships& memberships, Program&& program) {
  const Process& process = processes_[part.process];
  RankRecord record;
  record.rank = part.rank;
  record.rank_guessed = part.guessed;
  record.input = InputId(0);
  record.host = process.host;
  record.pid = process.pid;
  record.attempt = process.attempt;
  record.backend = "nccl";
  record.library_version = version_;
  record.stream_ordered = true;
  record.peers = process.peers;
  for (const std::size_t slot : part.slots) {
    const Comm& comm = process.comms[slot];
    const Seen as_seen = seen(process, slot);
    std::uint32_t position = as_seen.position.value_or(RankRecord::kNoPosition);
    const auto found = memberships.find({as_seen.name, as_seen.nranks});
    if (found == memberships.end()) {
      record.comms.push_back(intern_comm(as_seen, {}));
    } else {
      Membership& membership = found->second;
      if (!membership.comm) membership.comm = intern_comm(as_seen, membership.members);
      record.comms.push_back(*membership.comm);
      const auto& members = membership.members;
      if (!as_seen.position && part.rank && !members.empty()) {
        const auto at = std::lower_bound(members.begin(), members.end(), *part.rank);
        if (at != members.end() && *at == *part.rank) position = static_cast<std::uint32_t>(at - members.begin());
      }
    }
    record.comm_rank.push_back(position);
    record.progress.emplace_back();
    record.head_lost = record.head_lost || comm.begins_late;
  }
  record.program = ProgramId(out_.trace.programs.size());
  out_.trace.programs.push_back(std::move(program));
  out_.trace.ranks.push_back(std::move(record));
}

void NcclOps::name_writers(const std::vector<Part>& parts, LogEventWriter& events) const {
  // Positions that two processes have are of several communicators of one size: parts of the job, or jobs.
  std::map<RankId, std::size_t> by_position;
  for (const Part& part : parts) {
    if (part.rank && !part.guessed && !part.device && part.rank != processes_[part.process].stated) {
      ++by_position[*part.rank];
    }
  }
  const bool several = std::any_of(by_position.begin(), by_position.end(), [](const auto& n) { return n.second > 1; });
  std::map<std::pair<std::string, std::int64_t>, const Part*> whole;
  for (const Part& part : parts) {
    if (several && part.rank != processes_[part.process].stated) continue;
    if (part.rank && !part.guessed && !part.device) {
      whole[{processes_[part.process].host, processes_[part.process].pid}] = &part;
    }
  }
  if (whole.empty()) return;
  for (std::size_t i = 0; i < events.size(); ++i) {
    LogEvent& event = events.at(i);
    if (event.rank || !event.pid) continue;
    const auto found = whole.find({event.host, *event.pid});
    if (found != whole.end()) event.rank = found->second->rank;
  }
}

void NcclOps::finish(LogEventWriter& events) {
  for (Process& process : processes_) flush(process);
  std::vector<Part> all = parts();
  settle_ranks(all);
  guess_by_device(all);
  name_writers(all, events);
  // A log without operations says who initialised, not what was called: its events hold that.
  if (ops_ == 0) return;
  Memberships members = memberships(all);
  std::vector<RankId> ranks;
  for (std::size_t i = 0; i < all.size();) {
    for (Program& program : take_programs(all, i)) {
      write_record(all[i], members, std::move(program));
      if (all[i].rank) ranks.push_back(*all[i].rank);
      ++i;
    }
  }
  out_.inputs.front().ranks.insert(RankSet(std::move(ranks)));
}

}  // namespace ddx::formats
