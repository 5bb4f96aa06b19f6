#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>
#include <unordered_map>

#include "traces/formats/ops.h"
#include "traces/formats/ops_text.h"

namespace ddx::formats {
namespace {

// Records that do the same with the same groups and peers, and are written as one list of ranks.
struct WrittenClass {
  const RankRecord* record = nullptr;  // the first of them
  std::vector<std::int32_t> ranks;
};

// "1 more record", "2 more records".
std::string records(std::size_t count, std::string_view which) {
  return fmt::format("{} {}record{}", count, which, count == 1 ? "" : "s");
}

class Writer {
 public:
  Writer(const Trace& trace, std::ostream& out) : trace_(trace), out_(out) {}
  void run();

 private:
  void collect();
  std::string class_key(const RankRecord& record) const;
  void find_equal_programs();
  std::uint32_t world() const;
  void groups();
  void one_class(const WrittenClass& each);
  void record_line(const RankRecord& record);
  void join_lines(const RankRecord& record);
  void rows(const RankRecord& record);
  void row(const RankRecord& record, std::size_t at);
  void select_group(CommId comm);
  std::string group_definition(const Communicator& communicator) const;
  std::string group_word(CommId comm) const { return ops_word(trace_.text(trace_.communicator(comm).name)); }
  std::optional<std::uint32_t> position_of(CommId comm, std::int32_t rank);
  std::string peer_text(const std::optional<CommId>& comm, std::int32_t position);
  std::string arguments(const Signature& signature) const;
  std::string options(const RankRecord& record, const Signature& signature, const std::optional<CommId>& comm);
  std::string counts(const Signature& signature, const std::optional<CommId>& comm) const;
  std::string annotations(const Program& program, std::size_t at, std::optional<std::uint32_t> derived_group) const;
  void line(const std::string& text) { out_ << indent_ << text << '\n'; }

  const Trace& trace_;
  std::ostream& out_;
  std::uint32_t world_ = 0;
  std::vector<std::uint32_t> program_class_;  // by program: the first one that has the same rows
  std::vector<WrittenClass> classes_;
  std::vector<std::int32_t> seen_;  // ranks with a record
  std::size_t second_records_ = 0, unranked_records_ = 0;
  std::map<std::string_view, std::vector<CommId>> comms_by_name_;
  std::map<std::string_view, CommId>
      selected_;  // of a name that several communicators have, on the class being written
  std::unordered_map<std::uint32_t, std::unordered_map<std::int32_t, std::uint32_t>> positions_;
  std::string indent_, ranks_;
  std::uint32_t open_groups_ = 0, next_group_ = 0;  // as the reader will count them
};

void Writer::run() {
  world_ = world();
  collect();
  out_ << "world " << world_ << '\n';
  if (second_records_ > 0) out_ << "# left out: " << records(second_records_, "more ") << " of ranks that have one\n";
  if (unranked_records_ > 0) out_ << "# left out: " << records(unranked_records_, "") << " without a rank\n";
  groups();
  std::sort(seen_.begin(), seen_.end());
  std::vector<std::int32_t> absent;
  std::size_t next = 0;
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    if (next < seen_.size() && seen_[next] == static_cast<std::int32_t>(rank)) {
      ++next;
    } else {
      absent.push_back(static_cast<std::int32_t>(rank));
    }
  }
  if (!absent.empty()) out_ << "absent " << ops_rank_list(absent) << '\n';
  for (const WrittenClass& each : classes_) one_class(each);
}

std::uint32_t Writer::world() const {
  std::int64_t world = std::max<std::int64_t>(1, trace_.world_size.value_or(0));
  for (const RankRecord& record : trace_.ranks) {
    if (record.rank) world = std::max<std::int64_t>(world, std::int64_t{record.rank->value} + 1);
  }
  for (const Communicator& communicator : trace_.communicators()) {
    for (const RankId member : communicator.members)
      world = std::max<std::int64_t>(world, std::int64_t{member.value} + 1);
  }
  return static_cast<std::uint32_t>(std::min<std::int64_t>(world, kMaxRanks));
}

std::string Writer::class_key(const RankRecord& r) const {
  std::string key;
  const auto add = [&key](std::uint64_t word) { key.append(reinterpret_cast<const char*>(&word), sizeof(word)); };
  const auto maybe = [&add](const auto& word) {
    add(word ? 1 : 0);
    add(word ? static_cast<std::uint64_t>(*word) : 0);
  };
  add(program_class_[r.program.value]);
  add(r.comms.size());
  for (const CommId comm : r.comms) add(comm.value);
  for (const std::int32_t peer : r.peers) add(static_cast<std::uint64_t>(peer));
  add(std::uint64_t{r.snapshot} | std::uint64_t{r.stream_ordered} << 1 | std::uint64_t{r.head_lost} << 2 |
      std::uint64_t{r.tail_lost} << 3 | std::uint64_t{r.rank_guessed} << 4 | std::uint64_t{r.whole_program} << 5 |
      std::uint64_t{r.sends_end_locally} << 6);
  maybe(r.timing);
  maybe(r.pid);
  maybe(r.attempt);
  for (const CommProgress& progress : r.progress) {
    maybe(progress.last_enqueued);
    maybe(progress.last_started);
    maybe(progress.last_completed);
    add(progress.limit ? 1 : 0);
    if (progress.limit) add(static_cast<std::uint64_t>(progress.limit->timeout));
    if (progress.limit) add(progress.limit->since);
  }
  for (std::size_t slot = 0; slot < r.comms.size(); ++slot) {
    // A position that does not follow from the member list is told apart.
    const auto& members = trace_.communicator(r.comms[slot]).members;
    const std::uint32_t position = slot < r.comm_rank.size() ? r.comm_rank[slot] : RankRecord::kNoPosition;
    const bool follows = position < members.size() && members[position] == *r.rank;
    add(follows ? 0 : std::uint64_t{position} + 1);
  }
  for (const std::string* text : {&r.host, &r.backend, &r.library_version, &r.device}) key += *text + '\n';
  return key;
}

// Dumps of ranks that did the same come as programs of their own; they read better as one list.
void Writer::find_equal_programs() {
  std::unordered_multimap<std::size_t, std::uint32_t> index;
  for (std::uint32_t id = 0; id < trace_.programs.size(); ++id) {
    const Program& program = trace_.programs[id];
    RowHash rows;
    for (std::size_t row = 0; row < program.size(); ++row) hash_row(rows, program.at(OpId(row)));
    const std::size_t hash = rows.value();
    std::uint32_t first = id;
    const auto [begin, end] = index.equal_range(hash);
    for (auto at = begin; at != end && first == id; ++at) {
      const Program& other = trace_.programs[at->second];
      bool same = other.size() == program.size() && other.loops == program.loops;
      for (std::size_t row = 0; same && row < program.size(); ++row) {
        same = same_row(other.at(OpId(row)), program.at(OpId(row)));
      }
      if (same) first = at->second;
    }
    if (first == id) index.emplace(hash, id);
    program_class_.push_back(first);
  }
}

void Writer::collect() {
  find_equal_programs();
  std::unordered_map<std::string, std::size_t> index;
  std::set<std::int32_t> seen;
  for (const RankRecord& record : trace_.ranks) {
    if (!record.rank || record.rank->value < 0 || record.rank->value >= static_cast<std::int32_t>(world_)) {
      ++unranked_records_;
      continue;
    }
    if (!seen.insert(record.rank->value).second) {
      ++second_records_;
      continue;
    }
    const auto [at, fresh] = index.try_emplace(class_key(record), classes_.size());
    if (fresh) classes_.push_back({&record, {}});
    classes_[at->second].ranks.push_back(record.rank->value);
  }
  seen_.assign(seen.begin(), seen.end());
  for (WrittenClass& each : classes_) std::sort(each.ranks.begin(), each.ranks.end());
  std::sort(classes_.begin(), classes_.end(),
            [](const WrittenClass& a, const WrittenClass& b) { return a.ranks[0] < b.ranks[0]; });
  // Of one name only those that some rank has: a group without ranks would come back as another text each time.
  std::vector<bool> has_ranks(trace_.communicators().size(), false);
  for (const RankRecord& record : trace_.ranks) {
    for (const CommId comm : record.comms) has_ranks[comm.value] = true;
  }
  for (const bool wanted : {true, false}) {
    for (std::size_t i = 0; i < has_ranks.size(); ++i) {
      std::vector<CommId>& named = comms_by_name_[trace_.text(trace_.communicators()[i].name)];
      if (has_ranks[i] == wanted && (wanted || named.empty())) named.push_back(CommId(i));
    }
  }
}

std::string Writer::group_definition(const Communicator& communicator) const {
  std::string text = "pg " + ops_word(trace_.text(communicator.name)) + " = ";
  std::vector<std::int32_t> members;
  for (const RankId member : communicator.members) members.push_back(member.value);
  text += members.empty() ? "?" : ops_rank_list(members);
  if (communicator.declared_size) text += fmt::format(" size={}", *communicator.declared_size);
  if (communicator.description != StringId()) text += " desc=" + ops_quoted(trace_.text(communicator.description));
  if (communicator.synthesized) text += " synthesized";
  return text;
}

// Groups whose name is theirs alone; the others are told on the ranks that use them.
void Writer::groups() {
  for (std::size_t i = 0; i < trace_.communicators().size(); ++i) {
    const Communicator& communicator = trace_.communicators()[i];
    const std::string_view name = trace_.text(communicator.name);
    const std::vector<CommId>& named = comms_by_name_[name];
    if (named.size() > 1 || named.front() != CommId(i)) continue;
    const bool implied = (name == kWorldGroup || name == kCreationGroup) && holds_world(communicator, world_) &&
                         communicator.description == StringId() && !communicator.declared_size &&
                         !communicator.synthesized;
    if (!implied) out_ << group_definition(communicator) << '\n';
  }
}

void Writer::one_class(const WrittenClass& each) {
  ranks_ = ops_rank_list(each.ranks);
  selected_.clear();
  record_line(*each.record);
  join_lines(*each.record);
  rows(*each.record);
}

void Writer::record_line(const RankRecord& record) {
  std::string text;
  if (record.snapshot) text += " snapshot";
  if (record.whole_program == record.snapshot) text += record.whole_program ? " whole" : " part";
  if (record.stream_ordered) text += " stream_ordered";
  if (record.sends_end_locally) text += " local_sends";
  if (record.head_lost) text += " head_lost";
  if (record.tail_lost) text += " tail_lost";
  if (record.rank_guessed) text += " guessed";
  if (record.timing) text += *record.timing ? " timing=on" : " timing=off";
  if (!record.host.empty()) text += " host=" + ops_quoted(record.host);
  if (record.pid) text += fmt::format(" pid={}", *record.pid);
  if (record.attempt) text += fmt::format(" attempt={}", *record.attempt);
  if (!record.backend.empty()) text += " backend=" + ops_quoted(record.backend);
  if (!record.library_version.empty()) text += " library=" + ops_quoted(record.library_version);
  if (!record.device.empty()) text += " device=" + ops_quoted(record.device);
  if (!text.empty()) line(ranks_ + " record" + text);
}

void Writer::select_group(CommId comm) {
  const Communicator& communicator = trace_.communicator(comm);
  const std::string_view name = trace_.text(communicator.name);
  if (comms_by_name_[name].size() < 2) return;
  const auto [at, fresh] = selected_.try_emplace(name, comm);
  if (!fresh && at->second == comm) return;
  at->second = comm;
  line(ranks_ + " " + group_definition(communicator));
}

// What the rows do not show: groups in another order than their first use, counters, positions.
void Writer::join_lines(const RankRecord& record) {
  const Program& program = trace_.program(record);
  std::vector<bool> used(record.comms.size(), false);
  std::size_t next = 0;
  bool in_order = true;
  for (std::size_t at = 0; at < program.size(); ++at) {
    const auto slot = program.comm_slot(at);
    if (!slot || *slot >= used.size() || used[*slot]) continue;
    used[*slot] = true;
    in_order = in_order && *slot == next++;
  }
  in_order = in_order && next == used.size();
  for (std::size_t slot = 0; slot < record.comms.size(); ++slot) {
    const CommProgress progress = slot < record.progress.size() ? record.progress[slot] : CommProgress();
    std::string text;
    if (progress.last_enqueued) text += fmt::format(" enqueued={}", *progress.last_enqueued);
    if (progress.last_started) text += fmt::format(" started={}", *progress.last_started);
    if (progress.last_completed) text += fmt::format(" completed={}", *progress.last_completed);
    if (progress.limit) {
      text += fmt::format(" timeout={} since={}", ops_duration(progress.limit->timeout), progress.limit->since);
    }
    const std::uint32_t position = slot < record.comm_rank.size() ? record.comm_rank[slot] : RankRecord::kNoPosition;
    const auto derived = position_of(record.comms[slot], record.rank->value);
    if (position != derived.value_or(RankRecord::kNoPosition) && position != RankRecord::kNoPosition) {
      text += fmt::format(" pos={}", position);
    }
    if (in_order && text.empty()) continue;
    select_group(record.comms[slot]);
    line(fmt::format("{} in {}{}", ranks_, group_word(record.comms[slot]), text));
  }
}

void Writer::rows(const RankRecord& record) {
  const Program& program = trace_.program(record);
  std::vector<std::uint32_t> ends;
  std::size_t next_loop = 0;
  open_groups_ = next_group_ = 0;
  const auto close = [&](std::size_t at) {
    for (; !ends.empty() && ends.back() <= at; ends.pop_back()) {
      indent_.resize(indent_.size() - 2);
      line("end");
    }
  };
  for (std::size_t at = 0; at < program.size(); ++at) {
    close(at);
    for (; next_loop < program.loops.size() && program.loops[next_loop].begin <= at; ++next_loop) {
      const Loop& loop = program.loops[next_loop];
      if (loop.end <= loop.begin) continue;
      line(fmt::format("{} repeat {}", ranks_, loop.count));
      indent_ += "  ";
      ends.push_back(loop.end);
    }
    row(record, at);
  }
  close(program.size());
}

void Writer::row(const RankRecord& record, std::size_t at) {
  const Program& program = trace_.program(record);
  const Signature& signature = trace_.signature(program.signature(at));
  std::optional<CommId> comm;
  if (const auto slot = program.comm_slot(at); slot && *slot < record.comms.size()) comm = record.comms[*slot];
  if (comm) select_group(*comm);

  std::optional<std::uint32_t> derived;
  if (signature.kind == OpKind::group_begin && open_groups_++ == 0) ++next_group_;
  if (signature.kind == OpKind::group_end && open_groups_ > 0) --open_groups_;
  if (open_groups_ > 0 && (is_collective(signature.kind) || is_p2p(signature.kind))) derived = next_group_ - 1;

  line(ranks_ + ' ' + arguments(signature) + options(record, signature, comm) + annotations(program, at, derived));
}

std::string Writer::arguments(const Signature& signature) const {
  const auto type = [](DataType value) { return value == DataType::unknown ? "?" : name_of(value); };
  switch (signature.kind) {
    case OpKind::stop:
      return fmt::format("{} {}", name_of(signature.stop_reason), ops_quoted(trace_.text(signature.name)));
    case OpKind::split_group: return "split";
    case OpKind::new_group: return "new_group " + ops_rank_list(signature.members);
    case OpKind::compute:
    case OpKind::delay:
      return fmt::format("{} {}", name_of(signature.kind),
                         signature.compute_time ? ops_duration(*signature.compute_time) : std::string("?"));
    case OpKind::wait: return fmt::format("wait {}", signature.handle.value_or(0));
    default: break;
  }
  std::string text(name_of(signature.kind));
  if (!has_type_and_count(signature.kind)) return text;
  text += fmt::format(" {} ", type(signature.type_in));
  return text + (signature.count_in ? std::to_string(*signature.count_in) : "?");
}

std::string Writer::counts(const Signature& signature, const std::optional<CommId>& comm) const {
  std::string text;
  if (!has_type_and_count(signature.kind)) {
    if (signature.count_in) text += fmt::format(" in={}", *signature.count_in);
    if (signature.type_in != DataType::unknown) text += fmt::format(" type={}", name_of(signature.type_in));
  }
  const std::uint64_t size = comm ? trace_.communicator(*comm).size() : 0;
  bool overflow = false;
  const auto ruled = ruled_count_out(signature.kind, signature.count_in, size, overflow);
  if (overflow || ruled != signature.count_out) {
    text += " out=" + (signature.count_out ? std::to_string(*signature.count_out) : "?");
  }
  if (signature.type_out != ruled_type_out(signature.kind, signature.type_in)) {
    text += fmt::format(" out_type={}", name_of(signature.type_out));
  }
  return text;
}

std::string shapes_text(const std::vector<std::vector<std::int64_t>>& shapes) {
  std::string text;
  for (const auto& shape : shapes) {
    if (&shape != &shapes.front()) text += ',';
    text += shape.empty() ? "-" : fmt::format("{}", fmt::join(shape, "x"));
  }
  return text;
}

std::string Writer::options(const RankRecord& record, const Signature& signature, const std::optional<CommId>& comm) {
  const bool p2p = is_p2p(signature.kind);
  std::string text;
  if (const auto peer = trace_.peer(record, signature)) {
    text += p2p ? signature.kind == OpKind::send ? " to " : " from " : " root=";
    text += peer_text(comm, *peer);
  }
  const bool implied =
      comm && signature.kind == OpKind::new_group && trace_.text(trace_.communicator(*comm).name) == kCreationGroup;
  if (comm && !implied) text += ' ' + group_word(*comm);
  const bool grouped =
      is_collective(signature.kind) || p2p || signature.kind == OpKind::unknown || signature.kind == OpKind::coalesced;
  if (!comm && grouped) text += " no_group";
  text += counts(signature, comm);
  if (signature.redop != RedOp::unknown) text += fmt::format(" redop={}", name_of(signature.redop));
  if (signature.tag) text += fmt::format(" tag={}", *signature.tag);
  if (signature.stream) text += fmt::format(" stream={}", *signature.stream);
  if (signature.async) text += " async";
  if (!signature.split_in.empty() && signature.split_in == signature.split_out) {
    text += fmt::format(" splits={}", fmt::join(signature.split_in, ","));
  } else {
    if (!signature.split_in.empty()) text += fmt::format(" in_splits={}", fmt::join(signature.split_in, ","));
    if (!signature.split_out.empty()) text += fmt::format(" out_splits={}", fmt::join(signature.split_out, ","));
  }
  if (!signature.shape_in.empty()) text += " in_shapes=" + shapes_text(signature.shape_in);
  if (!signature.shape_out.empty()) text += " out_shapes=" + shapes_text(signature.shape_out);
  if (signature.color) text += fmt::format(" color={}", *signature.color);
  if (signature.key) text += fmt::format(" key={}", *signature.key);
  if (signature.name != StringId() && signature.kind != OpKind::stop) {
    text += " name=" + ops_quoted(trace_.text(signature.name));
  }
  return text;
}

std::optional<std::uint32_t> Writer::position_of(CommId comm, std::int32_t rank) {
  const auto [at, fresh] = positions_.try_emplace(comm.value);
  const auto& members = trace_.communicator(comm).members;
  if (fresh) {
    for (std::size_t i = 0; i < members.size(); ++i)
      at->second.try_emplace(members[i].value, static_cast<std::uint32_t>(i));
  }
  const auto found = at->second.find(rank);
  return found == at->second.end() ? std::nullopt : std::optional(found->second);
}

// The global rank where the reader makes this position of it again, else the position itself.
std::string Writer::peer_text(const std::optional<CommId>& comm, std::int32_t position) {
  if (!comm || trace_.communicator(*comm).members.empty()) return fmt::format("pos:{}", position);
  const auto& members = trace_.communicator(*comm).members;
  const auto size = static_cast<std::int64_t>(members.size());
  const bool inside = position >= 0 && position < size;
  const std::int64_t rank = inside             ? members[static_cast<std::size_t>(position)].value
                            : position >= size ? position
                                               : -1 - std::int64_t{position};
  if (rank < 0 || rank > INT32_MAX) return fmt::format("pos:{}", position);
  const auto found = position_of(*comm, static_cast<std::int32_t>(rank));
  const std::int64_t read_back = found ? std::int64_t{*found} : position_outside(rank, members.size());
  return read_back == position ? std::to_string(rank) : fmt::format("pos:{}", position);
}

std::string Writer::annotations(const Program& program, std::size_t at,
                                std::optional<std::uint32_t> derived_group) const {
  std::string text;
  if (const auto seq = program.seq(at)) text += fmt::format(" seq={}", *seq);
  if (const auto group = program.group(at); group && group != derived_group) text += fmt::format(" group={}", *group);
  if (const auto time = program.issue(at)) text += fmt::format(" issue={}", *time);
  if (const auto time = program.start(at)) text += fmt::format(" start={}", *time);
  if (const auto time = program.end(at)) text += fmt::format(" end={}", *time);
  if (program.state(at) != OpState::unknown) text += fmt::format(" [{}]", name_of(program.state(at)));
  if (program.retired(at)) text += " [retired]";
  const auto site = program.call_site(at);
  if (!site) return text;
  for (const Frame& frame : trace_.call_site(*site).frames) {
    std::string place = fmt::format("{}:{}", trace_.text(frame.file), frame.line);
    if (frame.function != StringId()) place += fmt::format(":{}", trace_.text(frame.function));
    // ops_word tells whether quotes are needed; the sign stays outside of them.
    const bool plain = ops_word(place) == place;
    text += " @" + (plain ? place : ops_quoted(place));
  }
  return text;
}

}  // namespace

void write_ops(const Trace& trace, std::ostream& out) { Writer(trace, out).run(); }

}  // namespace ddx::formats
