#include "cli/report/printable.h"

#include <cstdint>

namespace ddx::cli {
namespace {

constexpr char32_t kReplacement = 0xfffd;
constexpr char kEscape = '\x1b';

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Characters that show nothing but change how others show: controls, direction marks and overrides, line separators.
bool is_hidden(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

// The end of the escape sequence that begins at `at`: "ESC [ ... letter", "ESC ] ... BEL", or ESC and one character. An
// unfinished one ends with the line: it must not swallow the rest of the text.
std::size_t escape_end(std::string_view text, std::size_t at) {
  std::size_t i = at + 1;
  if (i >= text.size()) return i;
  const char kind = text[i];
  if (kind == '[') {
    for (++i; i < text.size() && text[i] >= 0x20 && text[i] <= 0x3f; ++i) {
    }
    return i < text.size() && text[i] >= 0x40 && text[i] <= 0x7e ? i + 1 : i;
  }
  if (kind == ']' || kind == 'P' || kind == '_' || kind == '^' || kind == 'X') {
    for (++i; i < text.size(); ++i) {
      if (text[i] == '\a') return i + 1;
      if (text[i] == kEscape) return i + 1 < text.size() && text[i + 1] == '\\' ? i + 2 : i;
      if (text[i] == '\n') return i;
    }
    return i;
  }
  return kind >= 0x20 && kind <= 0x7e ? i + 1 : i;
}

std::string printable(std::string_view text, bool keep_lines) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == kEscape) {
      at = escape_end(text, at);
      continue;
    }
    if (c == '\n' || c == '\t') {
      out += c == '\n' && keep_lines ? '\n' : ' ';
      ++at;
      continue;
    }
    const CodePoint point = code_point_at(text, at);
    if (!is_hidden(point.value)) append_utf8(out, point.value);
    at += point.length;
  }
  return out;
}

}  // namespace

CodePoint code_point_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xf0 && first < 0xf5   ? 4
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xc2 && first < 0xe0 ? 2
                                                             : 0;
  if (length == 0 || at + length > text.size()) return {kReplacement, 1};
  char32_t value = first & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[at + i])) return {kReplacement, 1};
    value = (value << 6) | (static_cast<unsigned char>(text[at + i]) & 0x3fU);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (overlong || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return {kReplacement, 1};
  return {value, length};
}

void append_utf8(std::string& out, char32_t value) {
  const auto byte = [&out](std::uint32_t b) { out += static_cast<char>(static_cast<unsigned char>(b)); };
  if (value < 0x80) return byte(value);
  if (value < 0x800) {
    byte(0xc0 | (value >> 6));
  } else {
    if (value < 0x10000) {
      byte(0xe0 | (value >> 12));
    } else {
      byte(0xf0 | (value >> 18));
      byte(0x80 | ((value >> 12) & 0x3f));
    }
    byte(0x80 | ((value >> 6) & 0x3f));
  }
  byte(0x80 | (value & 0x3f));
}

std::string printable_line(std::string_view text) { return printable(text, false); }
std::string printable_lines(std::string_view text) { return printable(text, true); }

std::string shortened(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  const std::size_t kept = columns > 3 ? columns - 3 : 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < kept && at < text.size(); ++i) at += code_point_at(text, at).length;
  return std::string(text.substr(0, at)) + "...";
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size(); at += code_point_at(text, at).length) ++columns;
  return columns;
}

}  // namespace ddx::cli
