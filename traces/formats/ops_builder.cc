#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "traces/formats/member_positions.h"
#include "traces/formats/ops_statements.h"

namespace ddx::formats {
namespace {

// Each segment of ranks that a line touches is a step, quicker than what the budget counts; beyond this many a byte a
// file is made to be slow.
constexpr std::uint64_t kFreeSteps = 200'000'000, kStepsPerByte = 64;

// Splits the ranks into segments (runs of ranks that no line tells apart) and the segments into classes that have the
// same lines. A class's lines are a list that shares its tail with the class it was split from, so that memory follows
// the distinct lists and not ranks times lines.
class Classes {
 public:
  Classes(const OpsFile& file, const Source& source, OpsBudget& budget);
  std::size_t segments() const { return class_of_.size(); }
  RankInterval ranks(std::size_t segment) const { return {cuts_[segment], cuts_[segment + 1] - 1}; }
  std::uint32_t class_of(std::size_t segment) const { return class_of_[segment]; }
  std::size_t size() const { return classes_.size(); }
  // Indices of statements, in order.
  std::vector<std::uint32_t> lines_of(std::uint32_t id) const;
  std::size_t segment_of(std::uint32_t rank) const {
    return static_cast<std::size_t>(std::lower_bound(cuts_.begin(), cuts_.end(), rank) - cuts_.begin());
  }

 private:
  struct Class {
    std::uint32_t tail = kNoneGiven;
    std::uint32_t size = 0;
    std::uint32_t seen_in = kNoneGiven;  // the last statement that split this class
    std::uint32_t split = kNoneGiven;    // and the class that took its segments
  };
  struct Node {
    std::uint32_t before, statement;
  };

  void apply(const OpsFile& file, std::uint32_t statement);
  void apply_to_all(std::uint32_t statement);
  void append(Class& to, std::uint32_t statement);
  void spend_steps(std::uint64_t steps);
  std::uint32_t new_class();

  OpsBudget& budget_;
  OpsPlace place_;
  std::uint64_t steps_left_;
  std::vector<std::uint32_t> cuts_;
  std::vector<std::uint32_t> class_of_;
  std::vector<Class> classes_;
  std::vector<std::uint32_t> free_, touched_;
  std::vector<Node> nodes_;
};

Classes::Classes(const OpsFile& file, const Source& source, OpsBudget& budget)
    : budget_(budget),
      place_{&source.path, 0},
      steps_left_(kFreeSteps + kStepsPerByte * source.bytes.size()),
      cuts_{0, file.world} {
  for (const auto* list : {&file.intervals, &file.absent}) {
    for (const RankInterval& interval : *list) {
      cuts_.push_back(interval.first);
      cuts_.push_back(interval.last + 1);
    }
  }
  std::sort(cuts_.begin(), cuts_.end());
  cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
  class_of_.resize(cuts_.size() - 1, 0);
  classes_.resize(1);
  classes_[0].size = static_cast<std::uint32_t>(class_of_.size());
  for (std::uint32_t i = 0; i < file.statements.size(); ++i) {
    place_.line = file.statements[i].line;
    apply(file, i);
  }
}

void Classes::apply(const OpsFile& file, std::uint32_t statement) {
  const OpsStatement& line = file.statements[statement];
  const RankInterval* interval = file.intervals.data() + line.first_interval;
  if (line.interval_count == 1 && interval->first == 0 && interval->last + 1 == file.world) {
    return apply_to_all(statement);
  }
  touched_.clear();
  for (std::uint32_t i = 0; i < line.interval_count; ++i, ++interval) {
    const std::size_t begin = segment_of(interval->first), end = segment_of(interval->last + 1);
    spend_steps(end - begin);
    for (std::size_t segment = begin; segment < end; ++segment) {
      const std::uint32_t from = class_of_[segment];
      if (classes_[from].seen_in != statement) {
        const std::uint32_t split = new_class();
        classes_[from].seen_in = statement;
        classes_[from].split = split;
        classes_[split].tail = classes_[from].tail;
        append(classes_[split], statement);
        touched_.push_back(from);
      }
      class_of_[segment] = classes_[from].split;
      --classes_[from].size;
      ++classes_[classes_[from].split].size;
    }
  }
  for (const std::uint32_t id : touched_) {
    if (classes_[id].size == 0) free_.push_back(id);
  }
}

void Classes::spend_steps(std::uint64_t steps) {
  if (steps > steps_left_) place_.fail("this file tells too many ranks apart on too many lines");
  steps_left_ -= steps;
}

void Classes::apply_to_all(std::uint32_t statement) {
  spend_steps(classes_.size());
  for (Class& each : classes_) {
    if (each.size > 0) append(each, statement);
  }
}

void Classes::append(Class& to, std::uint32_t statement) {
  budget_.take(1, place_);
  nodes_.push_back({to.tail, statement});
  to.tail = static_cast<std::uint32_t>(nodes_.size() - 1);
}

std::uint32_t Classes::new_class() {
  if (free_.empty()) {
    classes_.emplace_back();
    return static_cast<std::uint32_t>(classes_.size() - 1);
  }
  const std::uint32_t id = free_.back();
  free_.pop_back();
  classes_[id] = {};
  return id;
}

std::vector<std::uint32_t> Classes::lines_of(std::uint32_t id) const {
  std::vector<std::uint32_t> lines;
  for (std::uint32_t at = classes_[id].tail; at != kNoneGiven; at = nodes_[at].before) {
    lines.push_back(nodes_[at].statement);
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

// What the ranks of one class have in common.
struct Binding {
  ProgramId program;
  std::vector<CommId> comms;
  std::vector<CommProgress> progress;
  std::vector<std::optional<std::uint32_t>> positions;  // as stated
  std::vector<std::int32_t> peers;
  std::optional<std::uint32_t> record;  // index into OpsFile::records
};

// What a signature's lists hold.
std::uint64_t elements_of(const Signature& signature) {
  std::uint64_t elements = signature.split_in.size() + signature.split_out.size() + signature.members.size();
  for (const auto* shapes : {&signature.shape_in, &signature.shape_out}) {
    for (const auto& shape : *shapes) elements += 3 + shape.size();
  }
  return elements;
}

std::size_t hash_of(const std::vector<Op>& rows, const std::vector<Loop>& loops) {
  RowHash hash;
  for (const Op& row : rows) hash_row(hash, row);
  for (const Loop& loop : loops) {
    hash.add(std::uint64_t{loop.begin} << 32 | loop.end);
    hash.add(loop.count);
  }
  return hash.value();
}

// Builds one class after the other into `out`.
class Builder {
 public:
  Builder(const Source& source, const OpsFile& file, Evidence& out, OpsBudget& budget)
      : file_(file), out_(out), trace_(out.trace), budget_(budget), positions_(out.trace), place_{&source.path, 0} {}

  Binding build(const std::vector<std::uint32_t>& lines, std::uint32_t rank);
  // One record for each of the ranks.
  void add_records(const Binding& binding, RankInterval ranks);
  void report();

 private:
  struct Scoped {
    CommId comm;
    std::uint32_t line;
  };
  struct OpenLoop {
    std::size_t loop;
    std::uint32_t groups_open;
  };
  struct SignatureKey {
    std::uint64_t base, group_size, peer_and_handle;
    bool operator==(const SignatureKey&) const = default;
  };
  struct SignatureKeyHash {
    std::size_t operator()(const SignatureKey& key) const {
      RowHash hash;
      for (const std::uint64_t word : {key.base, key.group_size, key.peer_and_handle}) hash.add(word);
      return hash.value();
    }
  };

  void add_record(const Binding& binding, std::uint32_t rank);
  void reset();
  void collect_handles(const std::vector<std::uint32_t>& lines);
  void statement(const OpsStatement& line);
  void join(const OpsJoin& join);
  void end_loop();
  void operation(const OpsOperation& op);
  void track_group(OpKind kind, Op& row);
  CommId comm_of(StringId name, std::uint32_t comm, std::uint32_t comm_line);
  std::uint16_t comm_slot(CommId comm);
  std::uint32_t peer_slot(const OpsOperation& op, std::uint16_t slot);
  std::optional<std::uint32_t> handle_of(const OpsOperation& op, OpKind kind);
  SignatureId signature(const OpsOperation& op, std::optional<CommId> comm, std::optional<std::uint32_t> peer,
                        std::optional<std::uint32_t> handle);
  ProgramId share();

  const OpsFile& file_;
  Evidence& out_;
  Trace& trace_;
  OpsBudget& budget_;
  MemberPositions positions_;
  OpsPlace place_;
  std::uint32_t rank_ = 0;  // one of the class, for errors
  std::uint64_t strangers_ = 0;
  std::string first_stranger_;
  Binding binding_;
  std::vector<Op> rows_;
  std::vector<Loop> loops_;
  std::vector<OpenLoop> open_loops_;
  std::uint32_t groups_open_ = 0, next_group_ = 0, group_line_ = 0;
  std::uint32_t async_seen_ = 0, async_count_ = 0;
  std::unordered_map<std::uint32_t, Scoped> scoped_;
  std::unordered_map<std::uint32_t, std::uint16_t> comm_slots_;
  std::unordered_map<std::uint64_t, std::uint32_t, KeyedHash> peer_slots_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> handles_;  // async operations by name, in order
  std::unordered_multimap<std::size_t, ProgramId> programs_;               // by hash
  // The same line asks for the same signature on every class.
  std::unordered_map<SignatureKey, SignatureId, SignatureKeyHash> signatures_;
};

void Builder::reset() {
  binding_ = {};
  rows_.clear();
  loops_.clear();
  open_loops_.clear();
  groups_open_ = next_group_ = group_line_ = async_seen_ = async_count_ = 0;
  scoped_.clear();
  comm_slots_.clear();
  peer_slots_.clear();
  handles_.clear();
}

Binding Builder::build(const std::vector<std::uint32_t>& lines, std::uint32_t rank) {
  reset();
  rank_ = rank;
  place_.line = 0;
  collect_handles(lines);
  // A class walks all its lines, those that it shares with others too.
  budget_.take(lines.size(), place_);
  for (const std::uint32_t line : lines) statement(file_.statements[line]);
  const bool stopped = !rows_.empty() && trace_.signature(rows_.back().signature).kind == OpKind::stop;
  if (groups_open_ > 0 && !stopped) {
    place_.line = group_line_;
    place_.fail(fmt::format("expected a 'group_end' for this 'group_begin' on rank {}", rank_));
  }
  binding_.program = share();
  return std::move(binding_);
}

void Builder::collect_handles(const std::vector<std::uint32_t>& lines) {
  for (const std::uint32_t line : lines) {
    if (file_.statements[line].kind != StatementKind::operation) continue;
    const OpsOperation& op = file_.operations[file_.statements[line].detail];
    if (!file_.scratch.signature(op.base).async) continue;
    if (op.handle != StringId()) handles_[op.handle.value].push_back(async_count_);
    ++async_count_;
  }
}

void Builder::statement(const OpsStatement& line) {
  place_.line = line.line;
  switch (line.kind) {
    case StatementKind::operation: return operation(file_.operations[line.detail]);
    case StatementKind::record: binding_.record = line.detail; return;
    case StatementKind::join: return join(file_.joins[line.detail]);
    case StatementKind::scoped_group: {
      const OpsScopedGroup& group = file_.scoped_groups[line.detail];
      scoped_[group.name.value] = {group.comm, line.line};
      return;
    }
    case StatementKind::repeat:
      open_loops_.push_back({loops_.size(), groups_open_});
      loops_.push_back({static_cast<std::uint32_t>(rows_.size()), 0, file_.repeats[line.detail]});
      return;
    case StatementKind::end: return end_loop();
  }
}

void Builder::end_loop() {
  DDX_CHECK(!open_loops_.empty());
  const OpenLoop open = open_loops_.back();
  open_loops_.pop_back();
  if (open.groups_open != groups_open_) place_.fail("expected every group to begin and end inside one 'repeat'");
  loops_[open.loop].end = static_cast<std::uint32_t>(rows_.size());
  // A rank with nothing in the block has no loop; its inner ones went the same way, so this is the last one.
  if (loops_[open.loop].begin == loops_[open.loop].end) loops_.resize(open.loop);
}

void Builder::join(const OpsJoin& join) {
  const std::uint16_t slot = comm_slot(comm_of(join.group, join.comm, join.comm_line));
  binding_.progress[slot] = join.progress;
  binding_.positions[slot] = join.position;
}

CommId Builder::comm_of(StringId name, std::uint32_t comm, std::uint32_t comm_line) {
  const auto at = scoped_.find(name.value);
  if (at != scoped_.end() && (comm == kNoneGiven || at->second.line > comm_line)) return at->second.comm;
  if (comm == kNoneGiven) {
    place_.fail(fmt::format("group '{}' is unknown on rank {}: expected an earlier 'pg' line for it",
                            trace_.text(name).substr(0, 80), rank_));
  }
  return CommId(comm);
}

std::uint16_t Builder::comm_slot(CommId comm) {
  if (const auto at = comm_slots_.find(comm.value); at != comm_slots_.end()) return at->second;
  if (binding_.comms.size() >= 0xfffe) place_.fail("expected at most 65,534 groups on one rank");
  const auto slot = static_cast<std::uint16_t>(binding_.comms.size());
  comm_slots_[comm.value] = slot;
  binding_.comms.push_back(comm);
  binding_.progress.emplace_back();
  binding_.positions.emplace_back();
  return slot;
}

std::uint32_t Builder::peer_slot(const OpsOperation& op, std::uint16_t slot) {
  std::int32_t position = op.peer;
  if (op.peer_form == PeerForm::rank) {
    const CommId comm = binding_.comms[slot];
    const std::size_t size = trace_.communicator(comm).members.size();
    if (size == 0) place_.fail("expected pos:N: the members of this group are not recorded");
    const auto found = positions_.find(comm, op.peer);
    position = found ? static_cast<std::int32_t>(*found) : position_outside(op.peer, size);
  }
  // Slots are kept apart by communicator, so that ranks that differ only in their peers' numbers share a program.
  const std::uint64_t key = std::uint64_t{slot} << 32 | static_cast<std::uint32_t>(position);
  const auto [at, fresh] = peer_slots_.try_emplace(key, static_cast<std::uint32_t>(binding_.peers.size()));
  if (fresh) binding_.peers.push_back(position);
  return at->second;
}

std::optional<std::uint32_t> Builder::handle_of(const OpsOperation& op, OpKind kind) {
  if (kind != OpKind::wait) return std::nullopt;
  if (op.wait_number != kNoneGiven) {
    if (op.wait_number >= async_count_) {
      place_.fail(fmt::format("expected an async operation to wait for: rank {} has {}", rank_, async_count_));
    }
    return op.wait_number;
  }
  const auto named = handles_.find(op.handle.value);
  if (named == handles_.end()) {
    place_.fail(fmt::format("expected an operation with async={} on rank {}", trace_.text(op.handle), rank_));
  }
  // The latest before this line; else, in a loop, the first one behind it: of the round before.
  const auto& all = named->second;
  const auto behind = std::lower_bound(all.begin(), all.end(), async_seen_);
  return behind == all.begin() ? all.front() : *(behind - 1);
}

SignatureId Builder::signature(const OpsOperation& op, std::optional<CommId> comm, std::optional<std::uint32_t> peer,
                               std::optional<std::uint32_t> handle) {
  const Communicator* group = comm ? &trace_.communicator(*comm) : nullptr;
  const std::uint64_t size = group == nullptr ? 0 : group->size();
  const auto [at, fresh] =
      signatures_.try_emplace({std::uint64_t{op.base.value} << 1 | static_cast<std::uint64_t>(op.out_given), size,
                               std::uint64_t{peer.value_or(kNoneGiven)} << 32 | handle.value_or(kNoneGiven)});
  if (!fresh) return at->second;
  Signature signature = file_.scratch.signature(op.base);
  budget_.take(elements_of(signature), place_);
  signature.peer_slot = peer;
  signature.handle = handle;
  bool overflow = false;
  if (!op.out_given) signature.count_out = ruled_count_out(signature.kind, signature.count_in, size, overflow);
  if (overflow) place_.fail(fmt::format("expected a smaller count: times {} members it overflows 64 bits", size));
  return at->second = trace_.intern(std::move(signature));
}

void Builder::track_group(OpKind kind, Op& row) {
  if (kind == OpKind::group_begin) {
    if (groups_open_++ == 0) {
      ++next_group_;
      group_line_ = static_cast<std::uint32_t>(place_.line);
    }
  } else if (kind == OpKind::group_end) {
    if (groups_open_ == 0) place_.fail(fmt::format("expected a 'group_begin' before this on rank {}", rank_));
    --groups_open_;
  } else if (groups_open_ > 0 && (is_collective(kind) || is_p2p(kind))) {
    row.group = next_group_ - 1;
  }
}

void Builder::operation(const OpsOperation& op) {
  const Signature& base = file_.scratch.signature(op.base);
  Op row;
  std::optional<CommId> comm;
  if (op.group != StringId()) {
    comm = comm_of(op.group, op.comm, op.comm_line);
    row.comm_slot = comm_slot(*comm);
  }
  std::optional<std::uint32_t> peer;
  if (op.peer_form != PeerForm::none) {
    if (!comm && op.peer_form == PeerForm::rank) place_.fail("expected pos:N: this operation has no group");
    peer = peer_slot(op, row.comm_slot.value_or(0xffff));
  }
  row.signature = signature(op, comm, peer, handle_of(op, base.kind));
  track_group(base.kind, row);
  if (base.async) ++async_seen_;
  if (op.group_id != kNoneGiven) row.group = op.group_id;
  if (op.seq != kNoneGiven) row.seq = op.seq;
  if (op.call_site != kNoneGiven) row.call_site = CallSiteId(op.call_site);
  if (op.times != kNoneGiven) {
    row.issue = file_.times[op.times].issue;
    row.start = file_.times[op.times].start;
    row.end = file_.times[op.times].end;
  }
  row.state = op.state;
  row.retired = op.retired;
  rows_.push_back(row);
}

// The program of these rows: an earlier one where there is one.
ProgramId Builder::share() {
  const std::size_t hash = hash_of(rows_, loops_);
  const auto [begin, end] = programs_.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    const Program& program = trace_.programs[at->second.value];
    bool same = program.size() == rows_.size() && program.loops == loops_;
    for (std::size_t i = 0; same && i < rows_.size(); ++i) same = same_row(program.at(OpId(i)), rows_[i]);
    if (same) return at->second;
  }
  const ProgramId id(trace_.programs.size());
  Program& program = trace_.programs.emplace_back();
  program.reserve(rows_.size());
  for (const Op& row : rows_) program.append(row);
  program.loops = loops_;
  programs_.emplace(hash, id);
  return id;
}

void Builder::add_records(const Binding& binding, RankInterval ranks) {
  // What is copied for each rank, in words; a communicator's slot counts as one, for all that it weighs more.
  std::uint64_t each = binding.comms.size() + (binding.peers.size() + 1) / 2;
  if (binding.record) {
    const RankRecord& record = file_.records[*binding.record];
    each += (record.host.size() + record.backend.size() + record.library_version.size() + record.device.size()) / 8;
  }
  budget_.take((std::uint64_t{ranks.last} - ranks.first + 1) * each, {place_.path, 0});
  for (std::uint32_t rank = ranks.first; rank <= ranks.last; ++rank) add_record(binding, rank);
}

void Builder::report() {
  if (strangers_ == 0) return;
  out_.diagnostics.count("ops.not_a_member", DiagnosticSeverity::notice, first_stranger_, strangers_);
}

void Builder::add_record(const Binding& binding, std::uint32_t rank) {
  RankRecord& record = trace_.ranks.emplace_back();
  record.whole_program = true;
  if (binding.record) record = file_.records[*binding.record];
  record.rank = RankId(static_cast<std::int64_t>(rank));
  record.program = binding.program;
  record.comms = binding.comms;
  record.progress = binding.progress;
  record.peers = binding.peers;
  record.input = InputId(0);
  for (std::size_t slot = 0; slot < binding.comms.size(); ++slot) {
    const auto found = positions_.find(binding.comms[slot], rank);
    record.comm_rank.push_back(binding.positions[slot].value_or(found.value_or(RankRecord::kNoPosition)));
    const Communicator& communicator = trace_.communicator(binding.comms[slot]);
    if (found || communicator.members.empty()) continue;
    if (++strangers_ > 1) continue;
    first_stranger_ = fmt::format("{}: rank {} uses group {} without being a member of it", *place_.path, rank,
                                  trace_.text(communicator.name));
  }
}

}  // namespace

void build_ops(const Source& source, OpsFile& file, Evidence& out, OpsBudget& budget) {
  const Classes classes(file, source, budget);
  std::vector<bool> absent(classes.segments(), false);
  for (const RankInterval& interval : file.absent) {
    const std::size_t end = classes.segment_of(interval.last + 1);
    for (std::size_t segment = classes.segment_of(interval.first); segment < end; ++segment) absent[segment] = true;
  }
  Builder builder(source, file, out, budget);
  std::vector<std::optional<Binding>> bindings(classes.size());
  out.trace.world_size = file.world;
  out.trace.ranks.reserve(file.world);
  for (std::size_t segment = 0; segment < classes.segments(); ++segment) {
    const RankInterval ranks = classes.ranks(segment);
    const std::uint32_t id = classes.class_of(segment);
    if (absent[segment]) {
      if (classes.lines_of(id).empty()) continue;
      const OpsPlace place{&source.path, file.absent_line};
      place.fail(fmt::format("expected no lines for rank {}, which is absent", ranks.first));
    }
    std::optional<Binding>& binding = bindings[id];
    if (!binding) binding = builder.build(classes.lines_of(id), ranks.first);
    builder.add_records(*binding, ranks);
  }
  builder.report();
}

}  // namespace ddx::formats
