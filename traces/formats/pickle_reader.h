// PickleReader: a small machine for the value opcodes of Python's pickle (protocols 2 to 5). It runs nothing: opcodes
// that name, import or call code are refused by name. It is no DOM either: the items of one list (the value of
// `streamed_key` in the outermost dict) are handed on one by one and dropped, and equal lists and dicts are kept once.
// Memory is at most a small constant times the bytes read. Format: Python's pickletools; byte forms that PyTorch writes
// are those of torch::jit::Pickler, protocol 2 without type tags.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ddx::formats {

struct PickleValue {
  // `other`: something that ddx does not look into (a long integer beyond 64 bits, a reference to a dropped item).
  enum class Kind : std::uint8_t {
    none,
    boolean,
    integer,
    real,
    text,
    list,
    dict,
    other,
    // Of the machine's own stack and memo, never handed on.
    open_list,
    open_dict,
    open_streamed,
    run_end,
    open_at,
    alias,
    unset
  };

  Kind kind = Kind::none;
  std::uint32_t count = 0;  // open containers and run_end: how many values the run holds
  std::uint64_t word = 0;  // integer, real: its bits; text, list, dict: id, equal for equal content; else the machine's

  std::int64_t integer() const { return static_cast<std::int64_t>(word); }
  double real() const { return std::bit_cast<double>(word); }
  std::uint32_t id() const { return static_cast<std::uint32_t>(word); }
  bool operator==(const PickleValue&) const = default;
};

class PickleReader {
 public:
  using Pairs = std::span<const PickleValue>;  // key, value, key, value ...
  using Item = std::function<void(Pairs pairs)>;

  // `bytes` must outlive the reader. `item` gets each dict of the streamed list as soon as it is whole.
  PickleReader(std::string path, std::string_view bytes, std::string_view streamed_key, Item item);

  // Reads to STOP, or to the first byte that makes no sense (see problem()). Throws Error on an opcode that would run
  // code, and where the first bytes are no pickle of protocol 2 to 5.
  void run();

  bool whole() const { return whole_; }                    // STOP was reached
  const std::string& problem() const { return problem_; }  // why not, in words; empty when whole
  std::uint64_t offset() const { return at_; }             // of the byte behind the last one used
  std::uint64_t trailing() const { return bytes_.size() - at_; }
  Pairs top() const { return top_; }  // pairs of the outermost dict, but the streamed list; valid after run()
  std::uint64_t items_rejected() const { return rejected_; }  // items of the streamed list that were no dict

  // Of values handed on. Spans and views of nodes stay valid until run() goes on.
  std::string_view text(PickleValue value) const { return texts_[value.id()]; }
  Pairs items(PickleValue node) const {
    const Node& at = nodes_[node.id()];
    return Pairs(pool_).subspan(at.begin, at.count);
  }

 private:
  using Kind = PickleValue::Kind;
  struct Node {
    Kind kind;
    std::uint32_t count;
    std::size_t begin;
    std::uint64_t hash;
  };

  void step(std::uint8_t opcode);
  void step_structure(std::uint8_t opcode);
  [[noreturn]] void refuse(std::uint8_t opcode) const;
  void finish_cut();
  void collect_top();

  std::uint8_t take_byte(const char* what);
  template <std::size_t kSize>
  std::uint64_t take_little(const char* what);
  std::string_view take(std::uint64_t size, const char* what);
  std::string_view take_line(const char* what);

  void push(PickleValue value);
  void push_integer(std::int64_t value) { push({Kind::integer, 0, static_cast<std::uint64_t>(value)}); }
  void push_text(std::string_view text);
  void push_long(std::string_view digits);
  void push_decimal(std::string_view line, bool is_long);
  void push_real_big_endian(std::string_view digits);
  void push_real_text(std::string_view line);

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  std::size_t pop_mark();
  std::size_t begin_of(std::size_t end) const;
  void append(std::size_t from, Kind wanted);
  void append_one(std::size_t values, Kind wanted);
  void make_tuple(std::size_t from);
  void make_tuple_of(std::size_t values);
  void flatten(std::size_t from);
  PickleValue close(std::size_t header);
  PickleValue intern(Kind kind, Pairs items);

  void put(std::uint64_t key);
  void get(std::uint64_t key);
  PickleValue get_open(std::uint64_t key);

  bool at_streamed_place() const;
  void hand_on_finished();
  void hand_on_all(std::size_t from);
  void hand_on(std::size_t header);

  std::string path_;
  std::string_view bytes_;
  Item item_;
  std::uint64_t key_;  // of the hashes
  std::uint64_t at_ = 0;
  bool whole_ = false;
  bool full_ = false;  // a table reached its bound
  std::string problem_;
  std::uint64_t rejected_ = 0;

  // A container with items is a run: header, items, run_end. Items of a run are closed values; a header without items
  // stands alone. MARKs are positions.
  std::vector<PickleValue> stack_;
  std::vector<std::size_t> marks_;
  std::size_t streaming_ = SIZE_MAX;  // number of marks while the streamed list is the innermost open one
  std::vector<PickleValue> memo_;
  std::vector<PickleValue> top_;

  std::vector<std::string_view> texts_;
  std::vector<std::uint32_t> text_hashes_;
  std::vector<std::uint32_t> text_index_;  // open addressing; ids + 1
  std::vector<Node> nodes_;
  std::vector<PickleValue> pool_;
  std::vector<std::uint32_t> node_index_;
};

}  // namespace ddx::formats
