#include "traces/formats/pickle_reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"

namespace ddx::formats {
namespace {

// What stops the machine short of the end; caught in run().
struct Broken {
  std::string what;
};

// Live values of one kind; far above what any real dump needs, and a bound (1 GiB a table) on what a file can claim.
constexpr std::size_t kMaxValues = std::size_t{1} << 26;

// Opcodes that import, build or call objects, or reach outside of the file.
const char* code_opcode(std::uint8_t opcode) {
  switch (opcode) {
    case 'c': return "GLOBAL";
    case 0x93: return "STACK_GLOBAL";
    case 'R': return "REDUCE";
    case 'i': return "INST";
    case 'o': return "OBJ";
    case 0x81: return "NEWOBJ";
    case 0x92: return "NEWOBJ_EX";
    case 'b': return "BUILD";
    case 'P': return "PERSID";
    case 'Q': return "BINPERSID";
    case 0x82: return "EXT1";
    case 0x83: return "EXT2";
    case 0x84: return "EXT4";
    default: return nullptr;
  }
}

// Harmless opcodes that no writer of dumps uses.
const char* unused_opcode(std::uint8_t opcode) {
  switch (opcode) {
    case '2': return "DUP";
    case 'S': return "STRING";
    case 'V': return "UNICODE";
    case 'd': return "DICT";
    case 'l': return "LIST";
    case 'g': return "GET";
    case 'p': return "PUT";
    case 0x8f: return "EMPTY_SET";
    case 0x90: return "ADDITEMS";
    case 0x91: return "FROZENSET";
    case 0x96: return "BYTEARRAY8";
    case 0x97: return "NEXT_BUFFER";
    case 0x98: return "READONLY_BUFFER";
    default: return nullptr;
  }
}

template <class Hash>
void grow(std::vector<std::uint32_t>& index, std::size_t rows, Hash hash_of) {
  if (rows * 2 < index.size()) return;
  index.assign(std::max<std::size_t>(64, index.size() * 2), 0);
  const std::size_t mask = index.size() - 1;
  for (std::size_t row = 0; row < rows; ++row) {
    std::size_t slot = hash_of(row) & mask;
    while (index[slot] != 0) slot = (slot + 1) & mask;
    index[slot] = static_cast<std::uint32_t>(row + 1);
  }
}

[[noreturn, gnu::cold]] void throw_short(const char* what, std::uint64_t wanted, std::uint64_t left) {
  if (left == 0 && wanted == 1) throw Broken{fmt::format("the file ends where {} is due", what)};
  throw Broken{fmt::format("{} wants {} bytes, but {} are left", what, wanted, left)};
}

[[noreturn, gnu::cold]] void throw_unput(std::uint64_t key) {
  throw Broken{fmt::format("memo key {} was never put", key)};
}

}  // namespace

PickleReader::PickleReader(std::string path, std::string_view bytes, std::string_view streamed_key, Item item)
    : path_(std::move(path)), bytes_(bytes), item_(std::move(item)), key_(hash_key()) {
  push_text(streamed_key);  // id 0
  stack_.clear();
}

// The hot part, ahead of its callers so that it is inlined there: an entry is some eighty opcodes.

inline std::uint8_t PickleReader::take_byte(const char* what) {
  if (at_ >= bytes_.size()) throw_short(what, 1, 0);
  return static_cast<std::uint8_t>(bytes_[at_++]);
}

inline std::string_view PickleReader::take(std::uint64_t size, const char* what) {
  const std::uint64_t left = bytes_.size() - at_;
  if (size > left) throw_short(what, size, left);
  const std::string_view taken(bytes_.data() + at_, size);
  at_ += size;
  return taken;
}

template <std::size_t kSize>
inline std::uint64_t PickleReader::take_little(const char* what) {
  const std::string_view digits = take(kSize, what);
  std::uint64_t value = 0;
  for (std::size_t i = kSize; i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(digits[i]);
  return value;
}

inline void PickleReader::push(PickleValue value) {
  if (stack_.size() == stack_.capacity() && stack_.size() >= kMaxValues) throw Broken{"more values than ddx holds"};
  stack_.push_back(value);
}

inline void PickleReader::get(std::uint64_t key) {
  if (key >= memo_.size() || memo_[key].kind == Kind::unset) throw_unput(key);
  PickleValue value = memo_[key];
  if (value.kind == Kind::alias) value = get_open(value.word);
  if (value.kind == Kind::open_at) value = get_open(key);
  push(value);
}

inline std::size_t PickleReader::pop_mark() {
  if (marks_.empty()) throw Broken{"an opcode that needs a MARK, without one"};
  if (streaming_ == marks_.size()) streaming_ = SIZE_MAX;
  const std::size_t mark = marks_.back();
  marks_.pop_back();
  return mark;
}

// Where the value that ends before position `end` begins.
inline std::size_t PickleReader::begin_of(std::size_t end) const {
  if (end <= floor()) throw Broken{"an opcode takes a value that is not there"};
  const PickleValue& last = stack_[end - 1];
  return last.kind == Kind::run_end ? end - 2 - last.count : end - 1;
}

void PickleReader::run() {
  if (bytes_.size() < 2 || bytes_[0] != '\x80' || bytes_[1] < 2 || bytes_[1] > 5) {
    throw Error(path_, Place{.offset = 0, .line = {}}, "no pickle of protocol 2 to 5");
  }
  std::uint64_t begin = 0;
  try {
    while (!whole_ && !full_) {
      begin = at_;
      const std::uint8_t opcode = take_byte("an opcode");
      if (opcode == 'h') {  // half of all: keys and other strings that were met before
        get(take_byte("BINGET"));
      } else {
        step(opcode);
      }
    }
    if (full_) throw Broken{"more values than ddx holds"};
  } catch (const Broken& broken) {
    at_ = begin;
    problem_ = broken.what;
    finish_cut();
  }
  collect_top();
}

void PickleReader::step(std::uint8_t opcode) {
  switch (opcode) {
    case 0x94: return put(memo_.size());
    case 'r': return put(take_little<4>("LONG_BINPUT"));
    case 'q': return put(take_byte("BINPUT"));
    case 'j': return get(take_little<4>("LONG_BINGET"));
    case 'K': return push_integer(take_byte("BININT1"));
    case 'M': return push_integer(static_cast<std::int64_t>(take_little<2>("BININT2")));
    case 'J': return push_integer(static_cast<std::int32_t>(take_little<4>("BININT")));
    case 0x8a: return push_long(take(take_byte("LONG1"), "LONG1"));
    case 0x8b: return push_long(take(take_little<4>("LONG4"), "LONG4"));
    case 'I': return push_decimal(take_line("INT"), false);
    case 'L': return push_decimal(take_line("LONG"), true);
    case 'G': return push_real_big_endian(take(8, "BINFLOAT"));
    case 'F': return push_real_text(take_line("FLOAT"));
    case 'N': return push({Kind::none, 0, 0});
    case 0x88: return push({Kind::boolean, 0, 1});
    case 0x89: return push({Kind::boolean, 0, 0});
    case 'X': return push_text(take(take_little<4>("BINUNICODE"), "BINUNICODE"));
    case 0x8c: return push_text(take(take_byte("SHORT_BINUNICODE"), "SHORT_BINUNICODE"));
    case 0x8d: return push_text(take(take_little<8>("BINUNICODE8"), "BINUNICODE8"));
    case 'T': return push_text(take(take_little<4>("BINSTRING"), "BINSTRING"));
    case 'U': return push_text(take(take_byte("SHORT_BINSTRING"), "SHORT_BINSTRING"));
    case 'B': return push_text(take(take_little<4>("BINBYTES"), "BINBYTES"));
    case 'C': return push_text(take(take_byte("SHORT_BINBYTES"), "SHORT_BINBYTES"));
    case 0x8e: return push_text(take(take_little<8>("BINBYTES8"), "BINBYTES8"));
    default: return step_structure(opcode);
  }
}

void PickleReader::step_structure(std::uint8_t opcode) {
  switch (opcode) {
    case '(':
      if (!stack_.empty() && stack_.back().kind == Kind::open_streamed) streaming_ = marks_.size() + 1;
      if (marks_.size() >= kMaxValues) throw Broken{"nested too deeply"};
      marks_.push_back(stack_.size());
      return;
    case ']': return push({at_streamed_place() ? Kind::open_streamed : Kind::open_list, 0, 0});
    case '}':
      if (streaming_ == marks_.size()) hand_on_finished();
      return push({Kind::open_dict, 0, 0});
    case 'e': return append(pop_mark(), Kind::open_list);
    case 'u': return append(pop_mark(), Kind::open_dict);
    case 'a': return append_one(1, Kind::open_list);
    case 's': return append_one(2, Kind::open_dict);
    case ')': return make_tuple(stack_.size());
    case 0x85: return make_tuple_of(1);
    case 0x86: return make_tuple_of(2);
    case 0x87: return make_tuple_of(3);
    case 't': return make_tuple(pop_mark());
    case '0': return stack_.resize(begin_of(stack_.size()));
    case '1': return stack_.resize(pop_mark());
    case 0x80: (void)take_byte("PROTO"); return;
    case 0x95: (void)take_little<8>("FRAME"); return;  // a hint for buffering, no more
    case '.':
      if (!marks_.empty() || stack_.empty() || begin_of(stack_.size()) != 0) {
        throw Broken{"STOP, but the value is not finished"};
      }
      whole_ = true;
      return;
    default: refuse(opcode);
  }
}

void PickleReader::refuse(std::uint8_t opcode) const {
  if (const char* name = code_opcode(opcode)) {
    throw Error(path_, Place{.offset = at_ - 1, .line = {}},
                fmt::format("refused: {} would run code, and a flight-recorder dump holds only values", name));
  }
  if (const char* name = unused_opcode(opcode)) throw Broken{fmt::format("{} is no opcode of a dump", name)};
  throw Broken{fmt::format("0x{:02x} is no pickle opcode", opcode)};
}

std::string_view PickleReader::take_line(const char* what) {
  // No number needs more; without the bound a run of these opcodes in one long line would be searched again and again.
  const std::string_view window = bytes_.substr(at_, 64);
  const std::size_t end = window.find('\n');
  if (end == std::string_view::npos) throw Broken{fmt::format("{} has no end of line within 64 bytes", what)};
  at_ += end + 1;
  return window.substr(0, end);
}

void PickleReader::push_text(std::string_view text) {
  if (texts_.size() >= kMaxValues) throw Broken{"more strings than ddx holds"};
  grow(text_index_, texts_.size(), [&](std::size_t row) { return text_hashes_[row]; });
  const auto hash = static_cast<std::uint32_t>(hash_text(text, key_));
  const std::size_t mask = text_index_.size() - 1;
  std::size_t slot = hash & mask;
  for (; text_index_[slot] != 0; slot = (slot + 1) & mask) {
    const std::uint32_t id = text_index_[slot] - 1;
    if (text_hashes_[id] == hash && texts_[id] == text) return push({Kind::text, 0, id});
  }
  const std::size_t id = texts_.size();
  texts_.push_back(text);
  text_hashes_.push_back(hash);
  text_index_[slot] = static_cast<std::uint32_t>(id + 1);
  push({Kind::text, 0, id});
}

void PickleReader::push_long(std::string_view digits) {
  if (digits.size() > 8) return push({Kind::other, 0, 0});
  std::uint64_t value = 0;
  for (std::size_t i = digits.size(); i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(digits[i]);
  if (!digits.empty() && digits.size() < 8 && static_cast<std::uint8_t>(digits.back()) >= 0x80) {
    value |= ~std::uint64_t{0} << (8 * digits.size());
  }
  push_integer(static_cast<std::int64_t>(value));
}

void PickleReader::push_decimal(std::string_view line, bool is_long) {
  if (!is_long && (line == "00" || line == "01")) return push({Kind::boolean, 0, line == "01" ? 1U : 0U});
  if (is_long && line.ends_with('L')) line.remove_suffix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error == std::errc::result_out_of_range) return push({Kind::other, 0, 0});
  if (error != std::errc() || end != line.data() + line.size()) throw Broken{"INT holds no number"};
  push_integer(value);
}

void PickleReader::push_real_big_endian(std::string_view digits) {
  std::uint64_t bits = 0;
  for (char digit : digits) bits = bits << 8 | static_cast<std::uint8_t>(digit);
  push({Kind::real, 0, bits});
}

void PickleReader::push_real_text(std::string_view line) {
  double value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error != std::errc() || end != line.data() + line.size()) throw Broken{"FLOAT holds no number"};
  push({Kind::real, 0, std::bit_cast<std::uint64_t>(value)});
}

// Adds the values from `from` on to the container that ends there.
void PickleReader::append(std::size_t from, Kind wanted) {
  const std::size_t header = begin_of(from);
  if (wanted == Kind::open_list && stack_[header].kind == Kind::open_streamed) return hand_on_all(from);
  if (stack_[header].kind != wanted) {
    throw Broken{wanted == Kind::open_list ? "items are appended to something that is no open list"
                                           : "items are set in something that is no open dict"};
  }
  flatten(from);
  const std::size_t added = stack_.size() - from;
  if (wanted == Kind::open_dict && added % 2 != 0) throw Broken{"a dict gets a key without a value"};
  if (added == 0) return;
  if (stack_[header].count > 0) {  // take its run_end away
    std::move(stack_.begin() + static_cast<std::ptrdiff_t>(from), stack_.end(),
              stack_.begin() + static_cast<std::ptrdiff_t>(from) - 1);
    stack_.pop_back();
  }
  stack_[header].count += static_cast<std::uint32_t>(added);
  stack_.push_back({Kind::run_end, stack_[header].count, 0});
}

void PickleReader::append_one(std::size_t values, Kind wanted) {
  std::size_t from = stack_.size();
  for (std::size_t i = 0; i < values; ++i) from = begin_of(from);
  append(from, wanted);
}

void PickleReader::make_tuple(std::size_t from) {
  flatten(from);
  const PickleValue tuple = intern(Kind::list, Pairs(stack_).subspan(from));
  stack_.resize(from);
  push(tuple);
}

void PickleReader::make_tuple_of(std::size_t values) {
  std::size_t from = stack_.size();
  for (std::size_t i = 0; i < values; ++i) from = begin_of(from);
  make_tuple(from);
}

// Closes all containers from `from` on, so that each value there takes one place.
void PickleReader::flatten(std::size_t from) {
  std::size_t in = from;
  const auto is_header = [](const PickleValue& value) {
    return value.kind == Kind::open_list || value.kind == Kind::open_dict || value.kind == Kind::open_streamed;
  };
  while (in < stack_.size() && !is_header(stack_[in])) ++in;
  std::size_t out = in;
  while (in < stack_.size()) {
    if (is_header(stack_[in])) {
      const std::size_t count = stack_[in].count;
      stack_[out++] = close(in);
      in += count == 0 ? 1 : count + 2;
    } else {
      stack_[out++] = stack_[in++];
    }
  }
  stack_.resize(out);
}

PickleValue PickleReader::close(std::size_t header) {
  const PickleValue open = stack_[header];
  PickleValue closed{Kind::other, 0, 0};
  if (open.kind != Kind::open_streamed) {
    closed =
        intern(open.kind == Kind::open_list ? Kind::list : Kind::dict, Pairs(stack_).subspan(header + 1, open.count));
  }
  if (open.word != 0) memo_[open.word - 1] = closed;
  return closed;
}

PickleValue PickleReader::intern(Kind kind, Pairs items) {
  std::uint64_t hash = hash_mix(static_cast<std::uint64_t>(kind), items.size(), key_);
  for (const PickleValue& item : items) {
    hash = hash_mix(hash, item.word + (static_cast<std::uint64_t>(item.kind) << 56), key_);
  }
  hash = hash_mix(hash, 0, key_);
  grow(node_index_, nodes_.size(), [&](std::size_t row) { return static_cast<std::size_t>(nodes_[row].hash); });
  const std::size_t mask = node_index_.size() - 1;
  std::size_t slot = hash & mask;
  for (; node_index_[slot] != 0; slot = (slot + 1) & mask) {
    const std::uint32_t id = node_index_[slot] - 1;
    const Node& node = nodes_[id];
    if (node.hash == hash && node.kind == kind && node.count == items.size() &&
        std::equal(items.begin(), items.end(), pool_.begin() + static_cast<std::ptrdiff_t>(node.begin))) {
      return {kind, 0, id};
    }
  }
  if (pool_.size() + items.size() > kMaxValues || nodes_.size() >= kMaxValues) {
    full_ = true;  // run() stops behind this opcode, with the stack as it should be
    return {Kind::other, 0, 0};
  }
  const std::size_t id = nodes_.size();
  nodes_.push_back({kind, static_cast<std::uint32_t>(items.size()), pool_.size(), hash});
  pool_.insert(pool_.end(), items.begin(), items.end());
  node_index_[slot] = static_cast<std::uint32_t>(id + 1);
  return {kind, 0, id};
}

// An open container's header holds (in `word`) the first memo key it was put under, plus one, and the memo where the
// header is; closing it fills the memo in.
void PickleReader::put(std::uint64_t key) {
  // Picklers number their memo densely, so a key beyond the bytes read is a lie; it would make ddx allocate.
  if (key > at_ || key >= kMaxValues) throw Broken{fmt::format("memo key {} is out of range", key)};
  const std::size_t begin = begin_of(stack_.size());
  PickleValue value = stack_[begin];
  if (value.kind == Kind::open_list || value.kind == Kind::open_dict || value.kind == Kind::open_streamed) {
    if (value.word == 0) {
      stack_[begin].word = key + 1;
      value = {Kind::open_at, 0, begin};
    } else {
      value = {Kind::alias, 0, value.word - 1};
    }
  }
  if (key >= memo_.size()) memo_.resize(key + 1, {Kind::unset, 0, 0});
  memo_[key] = value;
}

// A container is used again before the one that holds it is filled, so it is not closed yet, but it is as good as
// whole. What it holds is looked at once; only a list that holds itself can have more later.
PickleValue PickleReader::get_open(std::uint64_t key) {
  if (key >= memo_.size()) return {Kind::other, 0, 0};
  if (memo_[key].kind == Kind::open_at) {
    const std::size_t header = memo_[key].word;
    memo_[key] = {Kind::other, 0, 0};
    if (header < stack_.size() && stack_[header].word == key + 1) {
      const PickleValue open = stack_[header];
      if (open.kind == Kind::open_list) memo_[key] = intern(Kind::list, Pairs(stack_).subspan(header + 1, open.count));
      if (open.kind == Kind::open_dict) memo_[key] = intern(Kind::dict, Pairs(stack_).subspan(header + 1, open.count));
    }
  }
  const Kind kind = memo_[key].kind;
  return kind == Kind::alias || kind == Kind::unset ? PickleValue{Kind::other, 0, 0} : memo_[key];
}

// Whether a list that begins here is the value of the streamed key (text id 0) in the outermost dict.
bool PickleReader::at_streamed_place() const {
  if (marks_.size() > 1 || stack_.size() < 2) return false;
  const PickleValue& key = stack_.back();
  if (key.kind != Kind::text || key.word != 0 || stack_[0].kind != Kind::open_dict) return false;
  const std::size_t end = marks_.empty() ? stack_.size() - 1 : marks_[0];
  if (end == 0 || end > stack_.size() - 1) return false;
  const PickleValue& last = stack_[end - 1];
  return (last.kind == Kind::run_end ? end - 2 - last.count : end - 1) == 0;
}

// The next item of the streamed list begins, so the one before it is whole.
void PickleReader::hand_on_finished() {
  if (stack_.size() <= floor()) return;
  const std::size_t header = begin_of(stack_.size());
  if (stack_[header].kind != Kind::open_dict) return;
  hand_on(header);
  stack_.resize(header);
}

void PickleReader::hand_on_all(std::size_t from) {
  for (std::size_t at = from; at < stack_.size();) {
    const PickleValue value = stack_[at];
    if (value.kind == Kind::open_dict) {
      hand_on(at);
    } else {
      ++rejected_;
    }
    at += value.count == 0 ? 1 : value.count + 2;
  }
  stack_.resize(from);
}

void PickleReader::hand_on(std::size_t header) { item_(Pairs(stack_).subspan(header + 1, stack_[header].count)); }

// The file ended inside: the last item of the streamed list may be whole nevertheless. It stands on top of the stack,
// above a MARK or, where Python's pickler wrote a single item, right above the list.
void PickleReader::finish_cut() {
  if (stack_.size() <= floor()) return;
  const std::size_t header = begin_of(stack_.size());
  const bool in_list = streaming_ == marks_.size() || (header > 0 && stack_[header - 1].kind == Kind::open_streamed);
  if (!in_list || stack_[header].kind != Kind::open_dict || stack_[header].count == 0) return;
  hand_on(header);
  stack_.resize(header);
}

void PickleReader::collect_top() {
  if (stack_.empty() || stack_[0].kind != Kind::open_dict) return;
  const std::size_t held = stack_[0].count;
  top_.assign(stack_.begin() + 1, stack_.begin() + 1 + static_cast<std::ptrdiff_t>(held));
  // What a cut file had got as far as: pairs behind the first MARK, before the second.
  std::size_t at = held == 0 ? 1 : held + 2;
  const std::size_t end = marks_.size() > 1 ? marks_[1] : stack_.size();
  while (at + 1 < end) {
    const PickleValue key = stack_[at++];
    const PickleValue value = stack_[at];
    const bool open = value.kind == Kind::open_list || value.kind == Kind::open_dict;
    const std::size_t next = at + (value.count == 0 ? 1 : value.count + 2);
    const bool unfinished = value.kind == Kind::open_streamed || (open && value.count == 0 && next == end);
    if (!unfinished) top_.insert(top_.end(), {key, open ? close(at) : value});
    at = next;
  }
}

}  // namespace ddx::formats
