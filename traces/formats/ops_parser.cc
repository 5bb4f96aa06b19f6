#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "traces/formats/ops_statements.h"

namespace ddx::formats {
namespace {

using Words = std::vector<OpsWord>;

std::vector<RankInterval> ascending(std::vector<RankInterval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const RankInterval& a, const RankInterval& b) { return a.first < b.first; });
  std::vector<RankInterval> merged;
  for (const RankInterval& interval : intervals) {
    if (!merged.empty() && interval.first <= std::uint64_t{merged.back().last} + 1) {
      merged.back().last = std::max(merged.back().last, interval.last);
    } else {
      merged.push_back(interval);
    }
  }
  return merged;
}

// One operation while its words are read.
struct OpDraft {
  Signature signature;
  OpsOperation op;
  bool has_group = false;
  bool no_group = false;
  std::optional<CallSite> site;
  OpsTimes times;
};

class Parser {
 public:
  Parser(const Source& source, Trace& trace, OpsBudget& budget) : source_(source), trace_(trace), budget_(budget) {}
  OpsFile run();

 private:
  struct Block {
    std::uint32_t first_interval, interval_count, line;
  };
  struct NamedGroup {
    CommId comm;
    std::uint32_t line = 0;
  };

  void line(std::string_view text);
  void world(const Words& words);
  void global_group(const Words& words);
  CommId group_of(const Words& words, std::size_t at, StringId& name);
  std::vector<RankId> members(std::string_view text);
  void absent(const Words& words);
  void end_block(const Words& words);
  void repeat(const Words& words, std::size_t at);
  void record(const Words& words);
  void record_word(const OpsWord& word, RankRecord& record);
  void join(const Words& words);
  void operation(const Words& words);
  std::size_t arguments(const Words& words, OpDraft& draft);
  std::size_t type_and_count(const Words& words, OpDraft& draft);
  void option(const Words& words, std::size_t& at, OpDraft& draft);
  bool signature_option(std::string_view key, std::string_view value, Signature& signature);
  bool row_option(std::string_view key, const OpsWord& word, OpDraft& draft);
  void bracket(const OpsWord& word, OpDraft& draft);
  void call_site(const OpsWord& word, OpDraft& draft);
  void peer(std::string_view text, OpDraft& draft);
  void finish(OpDraft& draft);
  std::uint32_t resolve(StringId group, std::uint32_t& line);
  CommId implied_group(std::string_view name);

  void set_ranks(std::string_view text);
  void add(StatementKind kind, std::size_t detail);
  const std::string& word_at(const Words& words, std::size_t at, std::string_view what) const;
  std::uint64_t number(std::string_view text, std::string_view what) const;
  std::uint32_t small_number(std::string_view text, std::string_view what) const;
  std::vector<std::uint64_t> numbers(std::string_view text) const;
  std::vector<std::vector<std::int64_t>> shapes(std::string_view text) const;
  DataType type(std::string_view text) const;
  [[noreturn]] void fail(const std::string& text) const { place_.fail(text); }

  const Source& source_;
  Trace& trace_;
  OpsBudget& budget_;
  OpsPlace place_;
  OpsFile file_;
  bool has_world_ = false;
  std::vector<Block> blocks_;
  std::unordered_map<std::uint32_t, NamedGroup> groups_;  // by name's id
  std::set<std::uint32_t> scoped_names_;
  std::uint32_t first_interval_ = 0, interval_count_ = 0;  // the ranks of the line being read
};

OpsFile Parser::run() {
  place_ = {&source_.path, 0};
  std::string_view rest = source_.bytes;
  if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);
  while (!rest.empty()) {
    ++place_.line;
    const auto end = rest.find('\n');
    line(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (place_.line == std::numeric_limits<std::uint32_t>::max()) fail("expected fewer lines");
  }
  if (!has_world_) fail("expected a line 'world N'");
  if (!blocks_.empty()) {
    place_.line = blocks_.back().line;
    fail("expected an 'end' for this 'repeat'");
  }
  file_.absent = ascending(std::move(file_.absent));
  return std::move(file_);
}

void Parser::line(std::string_view text) {
  Words words;
  split_ops_line(text, place_, words);
  if (words.empty()) return;
  const OpsWord& first = words[0];
  if (first.is("world")) return world(words);
  if (!has_world_) fail("expected 'world N' before anything else");
  if (first.is("pg")) return global_group(words);
  if (first.is("absent")) return absent(words);
  if (first.is("end")) return end_block(words);
  if (first.is("repeat")) {
    if (blocks_.empty()) set_ranks("all");
    if (!blocks_.empty()) {
      first_interval_ = blocks_.back().first_interval;
      interval_count_ = blocks_.back().interval_count;
    }
    return repeat(words, 1);
  }
  if (first.quoted || (first.text != "all" && (first.text[0] < '0' || first.text[0] > '9'))) {
    fail(fmt::format("expected ranks, 'pg', 'repeat' or 'end', not '{}'", first.text.substr(0, 80)));
  }
  set_ranks(first.text);
  word_at(words, 1, "an operation behind the ranks");
  if (words[1].is("repeat")) return repeat(words, 2);
  if (words[1].is("record")) return record(words);
  if (words[1].is("in")) return join(words);
  if (words[1].is("pg")) {
    StringId name;
    const CommId comm = group_of(words, 2, name);
    scoped_names_.insert(name.value);
    file_.scoped_groups.push_back({name, comm});
    return add(StatementKind::scoped_group, file_.scoped_groups.size() - 1);
  }
  operation(words);
}

void Parser::world(const Words& words) {
  if (has_world_) fail("expected only one 'world' line");
  const std::uint64_t world = number(word_at(words, 1, "a number of ranks"), "a number of ranks");
  if (words.size() > 2) fail("expected nothing behind 'world N'");
  if (world == 0 || world > kMaxRanks) {
    fail(fmt::format("expected a world of 1 to {} ranks, not {}", kMaxRanks, world));
  }
  // A record with its bindings weighs about as much as eight rows.
  budget_.take(world * 8, place_);
  file_.world = static_cast<std::uint32_t>(world);
  has_world_ = true;
}

// The words of "NAME = LIST ..." from `at`.
CommId Parser::group_of(const Words& words, std::size_t at, StringId& name) {
  word_at(words, at, "a group's name");
  const OpsWord& first = words[at];
  Communicator communicator;
  std::string list;
  if (!first.quoted && first.equals != std::string::npos) {
    communicator.name = trace_.strings.intern(first.key());
    list = first.value();
  } else {
    communicator.name = trace_.strings.intern(first.text);
    if (word_at(words, at + 1, "'=' and the group's ranks") != "=") fail("expected '=' behind the group's name");
    list = word_at(words, at + 2, "the group's ranks");
    at += 2;
  }
  if (communicator.name == StringId()) fail("expected a name for the group");
  for (++at; at < words.size(); ++at) {
    const OpsWord& word = words[at];
    if (word.is("synthesized")) {
      communicator.synthesized = true;
    } else if (word.key() == "desc" && word.equals != std::string::npos) {
      communicator.description = trace_.strings.intern(word.value());
    } else if (word.key() == "size" && word.equals != std::string::npos) {
      communicator.declared_size = small_number(word.value(), "a group's size");
    } else {
      fail(fmt::format("expected 'desc=', 'size=' or 'synthesized', not '{}'", word.text.substr(0, 80)));
    }
  }
  if (list != "?") communicator.members = members(list);
  name = communicator.name;
  return trace_.intern(communicator);
}

std::vector<RankId> Parser::members(std::string_view text) {
  const auto intervals = parse_rank_intervals(text, file_.world, place_);
  std::uint64_t count = 0;
  for (const RankInterval& interval : intervals) count += std::uint64_t{interval.last} - interval.first + 1;
  budget_.take(count, place_);
  std::vector<RankId> ranks;
  ranks.reserve(count);
  for (const RankInterval& interval : intervals) {
    for (std::uint64_t r = interval.first; r <= interval.last; ++r) ranks.emplace_back(static_cast<std::int64_t>(r));
  }
  auto sorted = intervals;
  std::sort(sorted.begin(), sorted.end(),
            [](const RankInterval& a, const RankInterval& b) { return a.first < b.first; });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i].first <= sorted[i - 1].last) fail(fmt::format("rank {} is twice in the list", sorted[i].first));
  }
  return ranks;
}

void Parser::global_group(const Words& words) {
  if (!blocks_.empty()) fail("expected groups for all ranks outside 'repeat' blocks");
  StringId name;
  const CommId comm = group_of(words, 1, name);
  groups_[name.value] = {comm, static_cast<std::uint32_t>(place_.line)};
}

void Parser::absent(const Words& words) {
  const auto more = parse_rank_intervals(word_at(words, 1, "ranks"), file_.world, place_);
  file_.absent.insert(file_.absent.end(), more.begin(), more.end());
  file_.absent_line = static_cast<std::uint32_t>(place_.line);
}

void Parser::repeat(const Words& words, std::size_t at) {
  const std::uint64_t count = number(word_at(words, at, "how often to repeat"), "how often to repeat");
  if (words.size() > at + 1) fail("expected nothing behind 'repeat N'");
  // A loop that never runs inside one that runs 10^18 times would keep a reader of the program busy with nothing.
  if (count == 0) fail("expected to repeat at least once");
  file_.repeats.push_back(count);
  add(StatementKind::repeat, file_.repeats.size() - 1);
  blocks_.push_back({first_interval_, interval_count_, static_cast<std::uint32_t>(place_.line)});
}

void Parser::end_block(const Words& words) {
  if (words.size() > 1) fail("expected nothing behind 'end'");
  if (blocks_.empty()) fail("expected a 'repeat' before this 'end'");
  first_interval_ = blocks_.back().first_interval;
  interval_count_ = blocks_.back().interval_count;
  blocks_.pop_back();
  add(StatementKind::end, 0);
}

void Parser::record(const Words& words) {
  RankRecord record;
  for (std::size_t i = 2; i < words.size(); ++i) record.snapshot = record.snapshot || words[i].is("snapshot");
  // What a recorder held is a part of what the rank did, unless the line says otherwise.
  record.whole_program = !record.snapshot;
  for (std::size_t i = 2; i < words.size(); ++i) record_word(words[i], record);
  file_.records.push_back(std::move(record));
  add(StatementKind::record, file_.records.size() - 1);
}

void Parser::record_word(const OpsWord& word, RankRecord& record) {
  const std::string value(word.equals == std::string::npos ? std::string_view() : word.value());
  const std::string_view key = word.equals == std::string::npos ? std::string_view(word.text) : word.key();
  if (word.is("snapshot")) {
    record.snapshot = true;
  } else if (word.is("whole") || word.is("part")) {
    record.whole_program = word.is("whole");
  } else if (word.is("stream_ordered")) {
    record.stream_ordered = true;
  } else if (word.is("local_sends")) {
    record.sends_end_locally = true;
  } else if (word.is("head_lost")) {
    record.head_lost = true;
  } else if (word.is("tail_lost")) {
    record.tail_lost = true;
  } else if (word.is("guessed")) {
    record.rank_guessed = true;
  } else if (key == "timing" && (value == "on" || value == "off")) {
    record.timing = value == "on";
  } else if (key == "host") {
    record.host = value;
  } else if (key == "pid") {
    record.pid = parse_signed(value);
    if (!record.pid) fail("expected a process id");
  } else if (key == "attempt") {
    record.attempt = small_number(value, "an attempt's number");
  } else if (key == "backend") {
    record.backend = value;
  } else if (key == "library") {
    record.library_version = value;
  } else if (key == "device") {
    record.device = value;
  } else {
    fail(fmt::format("expected a property of a record, not '{}'", word.text.substr(0, 80)));
  }
}

void Parser::join(const Words& words) {
  constexpr const char* kExpected = "expected 'enqueued=', 'started=', 'completed=', 'timeout=', 'since=' or 'pos='";
  OpsJoin join;
  CallLimit limit;
  bool timed = false;
  join.group = trace_.strings.intern(word_at(words, 2, "a group's name"));
  join.comm = resolve(join.group, join.comm_line);
  for (std::size_t i = 3; i < words.size(); ++i) {
    const OpsWord& word = words[i];
    if (word.equals == std::string::npos) fail(kExpected);
    if (word.key() == "timeout") {
      const auto timeout = parse_ops_duration(word.value());
      if (!timeout) fail("expected a time like 600s");
      timed = true;
      limit.timeout = *timeout;
      continue;
    }
    const std::uint64_t value = number(word.value(), "a number");
    if (word.key() == "enqueued") {
      join.progress.last_enqueued = value;
    } else if (word.key() == "started") {
      join.progress.last_started = value;
    } else if (word.key() == "completed") {
      join.progress.last_completed = value;
    } else if (word.key() == "since") {
      limit.since = small_number(word.value(), "a sequence number");
    } else if (word.key() == "pos") {
      join.position = small_number(word.value(), "a position");
    } else {
      fail(kExpected);
    }
  }
  if (!timed && limit.since > 0) fail("expected 'timeout=' beside 'since='");
  if (timed) join.progress.limit = limit;
  file_.joins.push_back(join);
  add(StatementKind::join, file_.joins.size() - 1);
}

void Parser::operation(const Words& words) {
  OpDraft draft;
  const std::string& name = words[1].text;
  if (name == "split") {
    draft.signature.kind = OpKind::split_group;
  } else if (const auto kind = op_kind_from(name); kind && *kind != OpKind::stop && !words[1].quoted) {
    draft.signature.kind = *kind;
  } else {
    draft.signature.kind = OpKind::stop;
    bool found = false;
    for (const auto reason : {StopReason::exit, StopReason::crash, StopReason::raise, StopReason::stuck}) {
      if (name != name_of(reason)) continue;
      draft.signature.stop_reason = reason;
      found = true;
    }
    if (!found) fail(fmt::format("expected an operation, not '{}'", name.substr(0, 80)));
  }
  for (std::size_t at = arguments(words, draft); at < words.size(); ++at) option(words, at, draft);
  finish(draft);
}

// Reads what stands behind the operation's name; the index of the first word behind it.
std::size_t Parser::arguments(const Words& words, OpDraft& draft) {
  Signature& signature = draft.signature;
  switch (signature.kind) {
    case OpKind::new_group:
      for (const RankId rank : members(word_at(words, 2, "the new group's ranks"))) {
        signature.members.push_back(rank.value);
      }
      return 3;
    case OpKind::compute:
    case OpKind::delay:
      signature.compute_time = parse_ops_duration(word_at(words, 2, "a time like 1.5ms"));
      if (!signature.compute_time && words[2].text != "?") fail("expected a time like 1.5ms (ns, us, ms, s), or ?");
      return 3;
    case OpKind::wait: {
      const std::string& what = word_at(words, 2, "what to wait for: a number or a name");
      if (const auto index = parse_unsigned(what); index && !words[2].quoted) {
        draft.op.wait_number = small_number(what, "the number of an async operation");
      } else {
        draft.op.handle = trace_.strings.intern(what);
      }
      return 3;
    }
    case OpKind::stop: {
      if (words.size() > 2 && words[2].quoted) {
        signature.name = trace_.strings.intern(words[2].text);
        return 3;
      }
      std::string text;
      for (std::size_t i = 2; i < words.size(); ++i) text += (text.empty() ? "" : " ") + words[i].text;
      signature.name = trace_.strings.intern(text);
      return words.size();
    }
    case OpKind::barrier: {
      // "barrier f32 1 GROUP" is read too: some backends reduce a scalar and say so.
      const bool typed = words.size() > 3 && data_type_from(words[2].text) && parse_unsigned(words[3].text);
      return typed ? type_and_count(words, draft) : 2;
    }
    default: return has_type_and_count(signature.kind) ? type_and_count(words, draft) : 2;
  }
}

std::size_t Parser::type_and_count(const Words& words, OpDraft& draft) {
  draft.signature.type_in = type(word_at(words, 2, "a datatype"));
  draft.signature.type_out = ruled_type_out(draft.signature.kind, draft.signature.type_in);
  const std::string& count = word_at(words, 3, "a count");
  if (count != "?") draft.signature.count_in = number(count, "a count of elements");
  return 4;
}

void Parser::option(const Words& words, std::size_t& at, OpDraft& draft) {
  const OpsWord& word = words[at];
  if (word.is("async")) {
    draft.signature.async = true;
  } else if (word.is("no_group")) {
    draft.no_group = true;
  } else if (word.is("to") || word.is("from")) {
    if (!is_p2p(draft.signature.kind) || word.is("to") != (draft.signature.kind == OpKind::send)) {
      fail("expected 'to' only with send and 'from' only with recv");
    }
    peer(word_at(words, ++at, "the peer's rank"), draft);
  } else if (!word.quoted && word.text[0] == '[') {
    bracket(word, draft);
  } else if (!word.quoted && word.text[0] == '@') {
    call_site(word, draft);
  } else if (!word.quoted && word.equals != std::string::npos) {
    if (!signature_option(word.key(), word.value(), draft.signature) && !row_option(word.key(), word, draft)) {
      fail(fmt::format("'{}' is no option of an operation (a group's name with '=' needs quotes)", word.key()));
    }
  } else if (draft.has_group) {
    fail(fmt::format("expected one group, found a second word '{}'", word.text.substr(0, 80)));
  } else {
    draft.op.group = trace_.strings.intern(word.text);
    draft.has_group = true;
    if (word.text.empty()) fail("expected a group's name");
  }
}

bool Parser::signature_option(std::string_view key, std::string_view value, Signature& signature) {
  if (key == "tag") {
    signature.tag = parse_signed(value);
    if (!signature.tag) fail("expected tag=N");
  } else if (key == "redop") {
    const auto redop = redop_from(value);
    if (!redop) fail("expected redop=sum|prod|min|max|avg|premul_sum|band|bor|bxor|user");
    signature.redop = *redop;
  } else if (key == "stream") {
    signature.stream = small_number(value, "a stream's number");
  } else if (key == "in") {
    signature.count_in = number(value, "in=COUNT");
  } else if (key == "type") {
    signature.type_in = type(value);
  } else if (key == "out_type") {
    signature.type_out = type(value);
  } else if (key == "splits") {
    signature.split_in = signature.split_out = numbers(value);
  } else if (key == "in_splits") {
    signature.split_in = numbers(value);
  } else if (key == "out_splits") {
    signature.split_out = numbers(value);
  } else if (key == "in_shapes") {
    signature.shape_in = shapes(value);
  } else if (key == "out_shapes") {
    signature.shape_out = shapes(value);
  } else if (key == "color" || key == "key") {
    auto& field = key == "color" ? signature.color : signature.key;
    field = parse_signed(value);
    if (!field) fail("expected color=N and key=N");
  } else if (key == "name") {
    signature.name = trace_.strings.intern(value);
  } else {
    return false;
  }
  return true;
}

bool Parser::row_option(std::string_view key, const OpsWord& word, OpDraft& draft) {
  const std::string_view value = word.value();
  if (key == "root") {
    if (!is_rooted(draft.signature.kind)) fail("expected root= only where an operation has a root");
    peer(value, draft);
  } else if (key == "out") {
    draft.op.out_given = true;
    if (value != "?") draft.signature.count_out = number(value, "out=COUNT");
  } else if (key == "async") {
    draft.signature.async = true;
    draft.op.handle = trace_.strings.intern(value);
  } else if (key == "seq") {
    draft.op.seq = small_number(value, "a sequence number");
  } else if (key == "group") {
    draft.op.group_id = small_number(value, "a group's number");
  } else if (key == "issue" || key == "start" || key == "end") {
    const auto time = parse_signed(value);
    if (!time || *time == INT64_MIN) fail("expected a time in nanoseconds");
    (key == "issue" ? draft.times.issue : key == "start" ? draft.times.start : draft.times.end) = time;
  } else {
    return false;
  }
  return true;
}

void Parser::bracket(const OpsWord& word, OpDraft& draft) {
  if (word.text == "[retired]") {
    draft.op.retired = true;
    return;
  }
  for (const auto state : {OpState::planned, OpState::scheduled, OpState::started, OpState::completed}) {
    if (word.text != fmt::format("[{}]", name_of(state))) continue;
    draft.op.state = state;
    return;
  }
  fail("expected [planned], [scheduled], [started], [completed] or [retired]");
}

// "@file:12" or "@file:12:function", innermost frame first. A file's name may hold colons, so the line is the first
// part that is a number.
void Parser::call_site(const OpsWord& word, OpDraft& draft) {
  const std::string_view text = std::string_view(word.text).substr(1);
  for (auto colon = text.find(':'); colon != std::string_view::npos; colon = text.find(':', colon + 1)) {
    const auto end = std::min(text.find(':', colon + 1), text.size());
    const auto line = parse_unsigned(text.substr(colon + 1, end - colon - 1));
    if (!line || *line > std::numeric_limits<std::uint32_t>::max()) continue;
    if (!draft.site) draft.site.emplace();
    const std::string_view function = end < text.size() ? text.substr(end + 1) : std::string_view();
    draft.site->frames.push_back({trace_.strings.intern(function), trace_.strings.intern(text.substr(0, colon)),
                                  static_cast<std::uint32_t>(*line)});
    return;
  }
  fail("expected @file:line or @file:line:function");
}

// A global rank, or "pos:N": a position in the group, whatever it is.
void Parser::peer(std::string_view text, OpDraft& draft) {
  const bool by_position = text.starts_with("pos:");
  const auto value = parse_signed(by_position ? text.substr(4) : text);
  if (!value || *value > std::numeric_limits<std::int32_t>::max() ||
      *value < (by_position ? std::numeric_limits<std::int32_t>::min() : 0)) {
    fail(fmt::format("expected a rank, not '{}'", text.substr(0, 80)));
  }
  draft.op.peer = static_cast<std::int32_t>(*value);
  draft.op.peer_form = by_position ? PeerForm::position : PeerForm::rank;
}

void Parser::finish(OpDraft& draft) {
  OpsOperation& op = draft.op;
  const OpKind kind = draft.signature.kind;
  const bool grouped = is_collective(kind) || is_p2p(kind) || kind == OpKind::unknown || kind == OpKind::coalesced;
  if (draft.has_group && (!grouped || draft.no_group)) fail("expected no group behind this operation");
  if (grouped && !draft.has_group && !draft.no_group) {
    op.group = trace_.strings.intern(kind == OpKind::new_group ? kCreationGroup : kWorldGroup);
  }
  if (is_p2p(kind) && op.peer_form == PeerForm::none && !draft.no_group) {
    // Before its group is looked for: a peer without its word reads as one.
    const std::string_view word = kind == OpKind::send ? "to" : "from";
    const std::string_view group = draft.has_group ? trace_.text(op.group) : std::string_view();
    const bool rank = parse_unsigned(group).has_value();
    fail(rank ? fmt::format("expected '{} RANK': '{} {}', if {} is meant for the peer", word, word, group.substr(0, 20),
                            group.substr(0, 20))
              : fmt::format("expected '{} RANK'", word));
  }
  if (op.group != StringId()) op.comm = resolve(op.group, op.comm_line);
  if (draft.signature.async && !grouped && !takes_length(kind)) {
    fail("expected 'async' only with communication, compute and delay");
  }
  if (draft.site) op.call_site = trace_.intern(*draft.site).value;
  if (draft.times.issue || draft.times.start || draft.times.end) {
    op.times = static_cast<std::uint32_t>(file_.times.size());
    file_.times.push_back(draft.times);
  }
  op.base = file_.scratch.intern(draft.signature);
  file_.operations.push_back(op);
  add(StatementKind::operation, file_.operations.size() - 1);
}

// What a group's name means for all ranks here; kNoneGiven: only some ranks define it.
std::uint32_t Parser::resolve(StringId group, std::uint32_t& line) {
  if (const auto at = groups_.find(group.value); at != groups_.end()) {
    line = at->second.line;
    return at->second.comm.value;
  }
  const std::string_view name = trace_.text(group);
  if (name == kWorldGroup || name == kCreationGroup) {
    const CommId comm = implied_group(name);
    groups_[group.value] = {comm, 0};
    return comm.value;
  }
  if (!scoped_names_.contains(group.value)) {
    fail(fmt::format("group '{}' is unknown here: expected an earlier 'pg {} = ...'", name.substr(0, 80),
                     name.substr(0, 80)));
  }
  return kNoneGiven;
}

CommId Parser::implied_group(std::string_view name) {
  budget_.take(file_.world, place_);
  Communicator communicator;
  communicator.name = trace_.strings.intern(name);
  communicator.members.reserve(file_.world);
  for (std::uint32_t r = 0; r < file_.world; ++r) communicator.members.emplace_back(std::int64_t{r});
  return trace_.intern(communicator);
}

void Parser::set_ranks(std::string_view text) {
  const auto ranks = ascending(parse_rank_intervals(text, file_.world, place_));
  if (!blocks_.empty()) {
    const Block& block = blocks_.back();
    const auto begin = file_.intervals.begin() + block.first_interval;
    const auto end = begin + block.interval_count;
    for (const RankInterval& interval : ranks) {
      // A block may list as many ranks as it has lines, so each line searches.
      const auto at =
          std::lower_bound(begin, end, interval.first,
                           [](const RankInterval& of_block, std::uint32_t first) { return of_block.last < first; });
      if (at == end || interval.first < at->first || interval.last > at->last) {
        fail(fmt::format("ranks {} are not all in the 'repeat' of line {}", text.substr(0, 80), block.line));
      }
    }
  }
  first_interval_ = static_cast<std::uint32_t>(file_.intervals.size());
  interval_count_ = static_cast<std::uint32_t>(ranks.size());
  file_.intervals.insert(file_.intervals.end(), ranks.begin(), ranks.end());
}

void Parser::add(StatementKind kind, std::size_t detail) {
  budget_.take(1, place_);
  file_.statements.push_back({kind, static_cast<std::uint32_t>(place_.line), static_cast<std::uint32_t>(detail),
                              first_interval_, interval_count_});
}

const std::string& Parser::word_at(const Words& words, std::size_t at, std::string_view what) const {
  if (at >= words.size()) fail(fmt::format("expected {}", what));
  return words[at].text;
}

std::uint64_t Parser::number(std::string_view text, std::string_view what) const {
  const auto value = parse_unsigned(text);
  if (!value) fail(fmt::format("expected {}, not '{}'", what, text.substr(0, 80)));
  return *value;
}

std::uint32_t Parser::small_number(std::string_view text, std::string_view what) const {
  const std::uint64_t value = number(text, what);
  if (value >= kNoneGiven) fail(fmt::format("expected {} below {}", what, kNoneGiven));
  return static_cast<std::uint32_t>(value);
}

std::vector<std::uint64_t> Parser::numbers(std::string_view text) const {
  std::vector<std::uint64_t> values;
  for (std::size_t at = 0; at <= text.size();) {
    const auto comma = std::min(text.find(',', at), text.size());
    values.push_back(number(text.substr(at, comma - at), "numbers like 1,2,3"));
    at = comma + 1;
  }
  return values;
}

// "2x3,4": a tensor of 2 by 3 and one of 4; "-" is a scalar.
std::vector<std::vector<std::int64_t>> Parser::shapes(std::string_view text) const {
  std::vector<std::vector<std::int64_t>> shapes(1);
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find_first_of(",x", at), text.size());
    const std::string_view part = text.substr(at, end - at);
    const auto length = parse_signed(part);
    if (!length && part != "-") fail("expected shapes like 2x3,4 ('-' for a scalar)");
    if (length) shapes.back().push_back(*length);
    if (end < text.size() && text[end] == ',') shapes.emplace_back();
    at = end + 1;
  }
  return shapes;
}

DataType Parser::type(std::string_view text) const {
  if (text == "?") return DataType::unknown;
  const auto type = data_type_from(text);
  if (!type) fail(fmt::format("expected a datatype like f32, bf16, i64, u8 or bool, not '{}'", text.substr(0, 80)));
  return *type;
}

}  // namespace

OpsFile parse_ops(const Source& source, Trace& trace, OpsBudget& budget) { return Parser(source, trace, budget).run(); }

}  // namespace ddx::formats
