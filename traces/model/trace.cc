#include "traces/model/trace.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace ddx {
namespace {

class WordsHash {
 public:
  void add(std::uint64_t word) { hash_.add(word); }
  template <class T>
  void add(const std::optional<T>& word) {
    add(std::uint64_t{word.has_value()});
    if (word) add(static_cast<std::uint64_t>(*word));
  }
  template <class T>
  void add(const std::vector<T>& words) {
    add(static_cast<std::uint64_t>(words.size()));
    for (const T& word : words) add(static_cast<std::uint64_t>(word));
  }
  std::size_t value() const { return hash_.value(); }

 private:
  RowHash hash_;
};

void add_shapes(WordsHash& hash, const std::vector<std::vector<std::int64_t>>& shapes) {
  hash.add(static_cast<std::uint64_t>(shapes.size()));
  for (const auto& shape : shapes) hash.add(shape);
}

std::size_t hash_of(const Signature& s) {
  WordsHash hash;
  hash.add(static_cast<std::uint64_t>(s.kind) | static_cast<std::uint64_t>(s.type_in) << 8 |
           static_cast<std::uint64_t>(s.type_out) << 16 | static_cast<std::uint64_t>(s.redop) << 24 |
           static_cast<std::uint64_t>(s.stop_reason) << 32 | static_cast<std::uint64_t>(s.async) << 40);
  hash.add(s.count_in);
  hash.add(s.count_out);
  hash.add(s.peer_slot);
  hash.add(s.tag);
  hash.add(s.stream);
  hash.add(s.compute_time);
  hash.add(s.handle);
  hash.add(s.split_in);
  hash.add(s.split_out);
  add_shapes(hash, s.shape_in);
  add_shapes(hash, s.shape_out);
  hash.add(s.members);
  hash.add(s.color);
  hash.add(s.key);
  hash.add(std::uint64_t{s.name.value});
  return hash.value();
}

std::size_t hash_of(const CallSite& site) {
  WordsHash hash;
  for (const Frame& frame : site.frames) {
    hash.add(std::uint64_t{frame.function.value} << 32 | frame.file.value);
    hash.add(std::uint64_t{frame.line});
  }
  return hash.value();
}

std::size_t hash_of(const Communicator& communicator) {
  WordsHash hash;
  hash.add(std::uint64_t{communicator.name.value} << 32 | communicator.description.value);
  for (RankId rank : communicator.members) hash.add(static_cast<std::uint64_t>(rank.value));
  hash.add(communicator.declared_size);
  return hash.value();
}

template <class Row, class Given>
std::uint32_t intern_row(std::vector<Row>& rows, std::unordered_multimap<std::size_t, std::uint32_t>& index,
                         Given&& row) {
  const std::size_t hash = hash_of(row);
  const auto [begin, end] = index.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    if (rows[at->second] == row) return at->second;
  }
  const auto id = static_cast<std::uint32_t>(rows.size());
  rows.push_back(std::forward<Given>(row));
  index.emplace(hash, id);
  return id;
}

// Appends to a column that stays empty until its first present value; `room`: rows that were reserved.
template <class Value>
void append_optional(std::vector<Value>& column, std::size_t row, std::size_t room, std::optional<Value> value,
                     Value none) {
  if (!value && column.empty()) return;
  if (column.empty()) column.reserve(room);
  if (column.size() < row) column.resize(row, none);
  column.push_back(value.value_or(none));
}

}  // namespace

OpId Program::append(const Op& op) {
  const std::size_t row = signature_.size();
  signature_.push_back(op.signature);
  const std::size_t room = signature_.capacity();
  flags_.push_back(static_cast<std::uint8_t>(static_cast<std::uint8_t>(op.state) | (op.retired ? kRetired : 0)));
  append_optional(comm_slot_, row, room, op.comm_slot, kNone16);
  append_optional(seq_, row, room, op.seq, kNone32);
  append_optional(group_, row, room, op.group, kNone32);
  append_optional(call_site_, row, room,
                  op.call_site ? std::optional<std::uint32_t>(op.call_site->value) : std::nullopt, kNone32);
  append_optional(issue_, row, room, op.issue, kNoTime);
  append_optional(start_, row, room, op.start, kNoTime);
  append_optional(end_, row, room, op.end, kNoTime);
  return OpId(row);
}

Op Program::at(OpId id) const {
  const std::size_t row = id.value;
  return {signature(row), comm_slot(row), seq(row), group(row), call_site(row),
          issue(row),     start(row),     end(row), state(row), retired(row)};
}

std::optional<std::uint32_t> Program::group(std::size_t row) const {
  if (row >= group_.size() || group_[row] == kNone32) return std::nullopt;
  return group_[row];
}

std::optional<CallSiteId> Program::call_site(std::size_t row) const {
  if (row >= call_site_.size() || call_site_[row] == kNone32) return std::nullopt;
  return CallSiteId(call_site_[row]);
}

void Program::set_seq(std::size_t row, std::uint32_t seq) {
  seq_.resize(std::max(seq_.size(), row + 1), kNone32);
  seq_[row] = seq;
}

UnlikeCalls Program::unlike_calls() const {
  UnlikeCalls calls;
  for (std::size_t row = 0; row < size(); ++row) {
    if (const auto slot = comm_slot(row)) calls.emplace(*slot, signature(row));
  }
  return calls;
}

void Program::set_state(std::size_t row, OpState state) {
  flags_[row] = static_cast<std::uint8_t>((flags_[row] & ~kStateMask) | static_cast<std::uint8_t>(state));
}

void Program::remap(const std::vector<SignatureId>& signatures, const std::vector<CallSiteId>& call_sites) {
  for (SignatureId& id : signature_) id = signatures[id.value];
  for (std::uint32_t& id : call_site_) {
    if (id != kNone32) id = call_sites[id].value;
  }
}

void Program::reserve(std::size_t rows) {
  signature_.reserve(rows);
  flags_.reserve(rows);
}

std::size_t Program::bytes() const {
  return signature_.capacity() * sizeof(SignatureId) + flags_.capacity() + comm_slot_.capacity() * 2 +
         (seq_.capacity() + group_.capacity() + call_site_.capacity()) * 4 +
         (issue_.capacity() + start_.capacity() + end_.capacity()) * sizeof(Nanos);
}

OpCursor::OpCursor(const Program& program) : program_(&program) { settle(); }

void OpCursor::next() {
  ++row_;
  settle();
}

void OpCursor::settle() {
  const auto& loops = program_->loops;
  while (true) {
    if (!active_.empty() && row_ == loops[active_.back().loop].end) {
      Active& inner = active_.back();
      if (--inner.left > 0) {
        row_ = loops[inner.loop].begin;
        next_loop_ = inner.loop + 1;
      } else {
        active_.pop_back();
      }
      continue;
    }
    if (next_loop_ < loops.size() && loops[next_loop_].begin == row_) {
      const Loop& loop = loops[next_loop_];
      if (loop.count == 0 || loop.begin == loop.end) {
        row_ = loop.end;
        while (next_loop_ < loops.size() && loops[next_loop_].begin < loop.end) ++next_loop_;
        if (loop.begin == loop.end) ++next_loop_;
      } else {
        active_.push_back({next_loop_++, loop.count});
      }
      continue;
    }
    return;
  }
}

StringTable::StringTable() { intern(""); }

StringTable::StringTable(const StringTable& other) {
  for (const std::string& text : other.strings_) intern(text);
}

StringTable& StringTable::operator=(const StringTable& other) {
  if (this != &other) *this = StringTable(other);
  return *this;
}

StringId StringTable::intern(std::string_view text) {
  if (const auto at = index_.find(text); at != index_.end()) return at->second;
  const StringId id(strings_.size());
  index_.emplace(strings_.emplace_back(text), id);
  return id;
}

SignatureId Trace::intern(const Signature& signature) {
  return SignatureId(intern_row(signatures_, signature_index_, signature));
}
SignatureId Trace::intern(Signature&& signature) {
  return SignatureId(intern_row(signatures_, signature_index_, std::move(signature)));
}

CallSiteId Trace::intern(const CallSite& site) { return CallSiteId(intern_row(call_sites_, call_site_index_, site)); }
CallSiteId Trace::intern(CallSite&& site) {
  return CallSiteId(intern_row(call_sites_, call_site_index_, std::move(site)));
}

CommId Trace::intern(const Communicator& communicator) {
  return CommId(intern_row(communicators_, communicator_index_, communicator));
}
CommId Trace::intern(Communicator&& communicator) {
  return CommId(intern_row(communicators_, communicator_index_, std::move(communicator)));
}

void Trace::list_members(CommId id, std::vector<RankId> members, bool assumed) {
  Communicator& communicator = communicators_[id.value];
  const auto [begin, end] = communicator_index_.equal_range(hash_of(communicator));
  const auto at = std::find_if(begin, end, [&](const auto& entry) { return entry.second == id.value; });
  if (at != end) communicator_index_.erase(at);
  communicator.members = std::move(members);
  communicator.assumed = assumed;
  communicator_index_.emplace(hash_of(communicator), id.value);
}

std::optional<std::int32_t> Trace::peer(const RankRecord& record, const Signature& signature) const {
  if (!signature.peer_slot || *signature.peer_slot >= record.peers.size()) return std::nullopt;
  return record.peers[*signature.peer_slot];
}

void Trace::merge(Trace&& other, std::uint32_t input_shift) {
  std::vector<StringId> string_map(other.strings.size());
  for (std::size_t i = 0; i < string_map.size(); ++i) string_map[i] = strings.intern(other.strings.at(StringId(i)));

  std::vector<SignatureId> signature_map;
  signature_map.reserve(other.signatures_.size());
  for (Signature& signature : other.signatures_) {
    signature.name = string_map[signature.name.value];
    signature_map.push_back(intern(std::move(signature)));
  }
  std::vector<CallSiteId> site_map;
  site_map.reserve(other.call_sites_.size());
  for (CallSite& site : other.call_sites_) {
    for (Frame& frame : site.frames) {
      frame.function = string_map[frame.function.value];
      frame.file = string_map[frame.file.value];
    }
    site_map.push_back(intern(std::move(site)));
  }
  std::vector<CommId> comm_map;
  comm_map.reserve(other.communicators_.size());
  for (Communicator& communicator : other.communicators_) {
    communicator.name = string_map[communicator.name.value];
    communicator.description = string_map[communicator.description.value];
    comm_map.push_back(intern(std::move(communicator)));
  }

  const auto program_shift = programs.size();
  for (Program& program : other.programs) {
    program.remap(signature_map, site_map);
    programs.push_back(std::move(program));
  }
  for (RankRecord& record : other.ranks) {
    record.program = ProgramId(record.program.value + program_shift);
    for (CommId& comm : record.comms) comm = comm_map[comm.value];
    if (record.input) record.input = InputId(record.input->value + input_shift);
    ranks.push_back(std::move(record));
  }
  if (other.world_size) world_size = std::max(world_size.value_or(0), *other.world_size);
}

}  // namespace ddx
