// The words of the ops notation, and the rules that its reader and its writer share (docs/ops-notation.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/units.h"
#include "traces/model/op.h"
#include "traces/model/trace.h"

namespace ddx::formats {

// The group that holds every rank, and the one that new_group counts in.
constexpr std::string_view kWorldGroup = "pg0";
constexpr std::string_view kCreationGroup = "pg0*";

// Where a word stands, for errors.
struct OpsPlace {
  const std::string* path = nullptr;
  std::uint64_t line = 0;  // 0: the file as a whole
  [[noreturn]] void fail(const std::string& expectation) const;
};

struct OpsWord {
  std::string text;                        // quotes and escapes resolved
  bool quoted = false;                     // begins with a quote: a name, never a keyword
  std::size_t equals = std::string::npos;  // index of the first '=' outside quotes
  std::string_view key() const { return std::string_view(text).substr(0, equals); }
  std::string_view value() const { return std::string_view(text).substr(equals + 1); }
  bool is(std::string_view keyword) const { return !quoted && text == keyword; }
};

// Cuts a line into words at blanks; a word that begins with '#' starts a comment.
void split_ops_line(std::string_view line, const OpsPlace& place, std::vector<OpsWord>& words);
// `text` as one word, in quotes where it needs them.
std::string ops_word(std::string_view text);
// `text` in quotes, whatever it holds.
std::string ops_quoted(std::string_view text);

// Ranks first..last, both included.
struct RankInterval {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};
// Reads "0,2,4-7" or "all" in the order written. Fails where it is no list or names a rank outside the world.
std::vector<RankInterval> parse_rank_intervals(std::string_view text, std::uint32_t world, const OpsPlace& place);
// Ranks in their order, runs of three and more as ranges.
std::string ops_rank_list(const std::vector<std::int32_t>& ranks);

std::optional<std::uint64_t> parse_unsigned(std::string_view text);
std::optional<std::int64_t> parse_signed(std::string_view text);
// "1.5ms", "20us", "7ns", "2s".
std::optional<Nanos> parse_ops_duration(std::string_view text);
std::string ops_duration(Nanos duration);

// Whether DTYPE and COUNT follow the operation's name.
bool has_type_and_count(OpKind kind);
// The output count that follows from an input count in a group of `size` members (0: not known); nullopt: none follows.
// Sets `overflow` where it would not fit.
std::optional<std::uint64_t> ruled_count_out(OpKind kind, std::optional<std::uint64_t> count_in, std::uint64_t size,
                                             bool& overflow);
DataType ruled_type_out(OpKind kind, DataType type_in);

// How a global rank outside a group of `size` members is kept where a position is expected: a number that is no
// position, so that the fault can be found, and from which the rank can be told again.
constexpr std::int32_t position_outside(std::int64_t rank, std::size_t size) {
  return rank >= static_cast<std::int64_t>(size) ? static_cast<std::int32_t>(rank)
                                                 : static_cast<std::int32_t>(-1 - rank);
}

// Whether `communicator` holds the ranks 0..world-1 in order.
bool holds_world(const Communicator& communicator, std::uint32_t world);

// Two rows alike in everything, and a hash of all of it: a file can hold many programs that differ in one column alone.
bool same_row(const Op& a, const Op& b);
void hash_row(RowHash& hash, const Op& row);

}  // namespace ddx::formats
