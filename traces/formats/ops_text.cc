#include "traces/formats/ops_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/printable.h"

namespace ddx::formats {
namespace {

template <class Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// The character behind a backslash; `at` stands on it and ends on its last character.
char unescape(std::string_view line, std::size_t& at, const OpsPlace& place) {
  switch (at < line.size() ? line[at] : '\0') {
    case 'n': return '\n';
    case 't': return '\t';
    case '\\': return '\\';
    case '"': return '"';
    case 'x':
      if (at + 2 < line.size() && hex_digit(line[at + 1]) >= 0 && hex_digit(line[at + 2]) >= 0) {
        at += 2;
        return static_cast<char>(hex_digit(line[at - 1]) * 16 + hex_digit(line[at]));
      }
      break;
    default: break;
  }
  place.fail("expected one of \\n \\t \\\\ \\\" \\xHH behind the backslash");
}

// Whether a terminal shows this one character as it is: no control, no direction override, no broken UTF-8.
bool is_shown(std::string_view piece) { return printable_text(piece) == piece; }

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

}  // namespace

void OpsPlace::fail(const std::string& expectation) const {
  throw Error(*path, {{}, line == 0 ? std::nullopt : std::optional(line)}, expectation);
}

void split_ops_line(std::string_view line, const OpsPlace& place, std::vector<OpsWord>& words) {
  words.clear();
  std::size_t at = 0;
  while (true) {
    while (at < line.size() && is_blank(line[at])) ++at;
    if (at == line.size() || line[at] == '#') return;
    OpsWord& word = words.emplace_back();
    word.quoted = line[at] == '"';
    bool in_quotes = false;
    for (; at < line.size() && (in_quotes || !is_blank(line[at])); ++at) {
      const char c = line[at];
      if (c == '"') {
        in_quotes = !in_quotes;
      } else if (in_quotes && c == '\\') {
        ++at;
        word.text += unescape(line, at, place);
      } else {
        if (c == '=' && !in_quotes && word.equals == std::string::npos) word.equals = word.text.size();
        word.text += c;
      }
    }
    if (in_quotes) place.fail("expected a closing quote");
  }
}

std::string ops_quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, code_point_at(text, 0).length);
    text.remove_prefix(piece.size());
    if (piece == "\"" || piece == "\\") {
      out += '\\';
      out += piece;
    } else if (is_shown(piece)) {
      out += piece;
    } else {
      for (const char c : piece) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return out + '"';
}

std::string ops_word(std::string_view text) {
  static constexpr std::array<std::string_view, 3> kKeywords{"async", "to", "from"};
  bool plain = !text.empty() && text[0] != '#' && text[0] != '@' && text[0] != '[';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    plain = plain && byte > 0x20 && byte != 0x7f && c != '"' && c != '=' && c != '\\';
  }
  plain = plain && (is_plain_ascii(text) || printable_text(text) == text);
  for (const std::string_view keyword : kKeywords) plain = plain && text != keyword;
  return plain ? std::string(text) : ops_quoted(text);
}

std::vector<RankInterval> parse_rank_intervals(std::string_view text, std::uint32_t world, const OpsPlace& place) {
  if (text == "all") return world == 0 ? std::vector<RankInterval>{} : std::vector<RankInterval>{{0, world - 1}};
  std::vector<RankInterval> intervals;
  std::string_view rest = text;
  while (true) {
    const auto comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const auto dash = part.find('-');
    const auto first = parse_unsigned(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_unsigned(part.substr(dash + 1));
    if (!first || !last || *last < *first) {
      place.fail(fmt::format("expected ranks like 3 or 0,2 or 4-7, not '{}'", text.substr(0, 80)));
    }
    if (*last >= world) place.fail(fmt::format("rank {} is outside the world of {}", *last, world));
    intervals.push_back({static_cast<std::uint32_t>(*first), static_cast<std::uint32_t>(*last)});
    if (comma == std::string_view::npos) return intervals;
    rest.remove_prefix(comma + 1);
  }
}

std::string ops_rank_list(const std::vector<std::int32_t>& ranks) {
  std::string out;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && std::int64_t{ranks[last + 1]} == std::int64_t{ranks[last]} + 1) ++last;
    if (!out.empty()) out += ',';
    if (last < i + 2) last = i;
    out += last == i ? std::to_string(ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return out;
}

std::optional<std::uint64_t> parse_unsigned(std::string_view text) { return parse_whole<std::uint64_t>(text); }
std::optional<std::int64_t> parse_signed(std::string_view text) { return parse_whole<std::int64_t>(text); }

std::optional<Nanos> parse_ops_duration(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, Nanos>, 4> kUnits{
      {{"ns", 1}, {"us", kMicrosecond}, {"ms", kMillisecond}, {"s", kSecond}}};
  for (const auto& [name, unit] : kUnits) {
    if (!text.ends_with(name)) continue;
    const std::string_view number = text.substr(0, text.size() - name.size());
    if (const auto whole = parse_whole<Nanos>(number)) {
      if (*whole < 0 || *whole > std::numeric_limits<Nanos>::max() / unit) return std::nullopt;
      return *whole * unit;
    }
    const auto value = parse_whole<double>(number);
    if (!value) continue;  // "5ms" ends in "s" too
    const double nanos = *value * static_cast<double>(unit);
    if (!std::isfinite(nanos) || nanos < 0 || nanos > 9e18) return std::nullopt;
    return static_cast<Nanos>(std::llround(nanos));
  }
  return std::nullopt;
}

std::string ops_duration(Nanos duration) {
  if (duration % kSecond == 0 && duration != 0) return fmt::format("{}s", duration / kSecond);
  if (duration % kMillisecond == 0 && duration != 0) return fmt::format("{}ms", duration / kMillisecond);
  if (duration % kMicrosecond == 0 && duration != 0) return fmt::format("{}us", duration / kMicrosecond);
  return fmt::format("{}ns", duration);
}

bool has_type_and_count(OpKind kind) {
  switch (kind) {
    case OpKind::unknown:
    case OpKind::all_reduce:
    case OpKind::reduce_scatter:
    case OpKind::all_gather:
    case OpKind::broadcast:
    case OpKind::reduce:
    case OpKind::gather:
    case OpKind::scatter:
    case OpKind::all_to_all:
    case OpKind::send:
    case OpKind::recv: return true;
    default: return false;
  }
}

std::optional<std::uint64_t> ruled_count_out(OpKind kind, std::optional<std::uint64_t> count_in, std::uint64_t size,
                                             bool& overflow) {
  if (!count_in || !is_collective(kind) || !has_type_and_count(kind)) return std::nullopt;
  const bool grows = kind == OpKind::all_gather || kind == OpKind::gather;
  const bool shrinks = kind == OpKind::reduce_scatter || kind == OpKind::scatter;
  if (!grows && !shrinks) return count_in;
  if (size == 0) return std::nullopt;
  if (shrinks) return *count_in / size;
  overflow = *count_in > std::numeric_limits<std::uint64_t>::max() / size;
  return overflow ? std::nullopt : std::optional(*count_in * size);
}

DataType ruled_type_out(OpKind kind, DataType type_in) {
  return is_collective(kind) && has_type_and_count(kind) ? type_in : DataType::unknown;
}

bool holds_world(const Communicator& communicator, std::uint32_t world) {
  if (communicator.members.size() != world) return false;
  for (std::uint32_t i = 0; i < world; ++i) {
    if (communicator.members[i].value != static_cast<std::int32_t>(i)) return false;
  }
  return true;
}

bool same_row(const Op& a, const Op& b) {
  return a.signature == b.signature && a.comm_slot == b.comm_slot && a.seq == b.seq && a.group == b.group &&
         a.call_site == b.call_site && a.issue == b.issue && a.start == b.start && a.end == b.end &&
         a.state == b.state && a.retired == b.retired;
}

void hash_row(RowHash& hash, const Op& row) {
  const auto half = [](const auto& value) { return std::uint64_t{value.value_or(0)}; };
  hash.add(std::uint64_t{row.signature.value} << 32 | half(row.comm_slot));
  hash.add(half(row.seq) << 32 | half(row.group));
  hash.add((row.call_site ? std::uint64_t{row.call_site->value} + 1 : 0) << 8 |
           static_cast<std::uint64_t>(row.state) << 1 | static_cast<std::uint64_t>(row.retired));
  for (const auto& time : {row.issue, row.start, row.end}) {
    if (time) hash.add(static_cast<std::uint64_t>(*time));
  }
}

}  // namespace ddx::formats
