#include "base/printable.h"

#include <algorithm>
#include <cstdint>

namespace ddx {
namespace {

constexpr char32_t kReplacement = 0xfffd;
constexpr char kEscape = '\x1b';

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Characters that show nothing but change how others show: controls, direction marks and overrides, line separators.
bool is_hidden(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

// Of "ESC ] ... BEL" and kin, whose text begins at `at`.
std::size_t string_escape_end(std::string_view text, std::size_t at) {
  for (; at < text.size(); ++at) {
    if (text[at] == '\a') return at + 1;
    if (text[at] == kEscape) return at + 1 < text.size() && text[at + 1] == '\\' ? at + 2 : at;
    if (text[at] == '\n') return at;
  }
  return at;
}

// The end of the escape sequence that begins at `at`: "ESC [ ... letter", "ESC ] ... BEL", or ESC and one character. An
// unfinished one ends with the line: it must not swallow the rest of the text.
std::size_t escape_end(std::string_view text, std::size_t at) {
  ++at;
  if (at >= text.size()) return at;
  const char kind = text[at];
  if (kind == '[') {
    ++at;
    while (at < text.size() && text[at] >= 0x20 && text[at] <= 0x3f) ++at;
    return at < text.size() && text[at] >= 0x40 && text[at] <= 0x7e ? at + 1 : at;
  }
  if (kind == ']' || kind == 'P' || kind == '_' || kind == '^' || kind == 'X') return string_escape_end(text, at + 1);
  return kind >= 0x20 && kind <= 0x7e ? at + 1 : at;
}

}  // namespace

CodePoint code_point_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1};
  std::size_t length = 0;
  if (first >= 0xc2 && first < 0xe0) length = 2;
  if (first >= 0xe0 && first < 0xf0) length = 3;
  if (first >= 0xf0 && first < 0xf5) length = 4;
  if (length == 0 || length > text.size() - at) return {kReplacement, 1};
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

bool is_plain_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::string printable_text(std::string_view text, std::size_t max_bytes) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == kEscape) {
      at = escape_end(text, at);
      continue;
    }
    const CodePoint point = code_point_at(text, at);
    at += point.length;
    const std::size_t before = out.size();
    if (c == '\n' || c == '\t') {
      out += ' ';
    } else if (!is_hidden(point.value)) {
      append_utf8(out, point.value);
    }
    if (out.size() > max_bytes) {
      out.resize(before);
      break;
    }
  }
  return out;
}

}  // namespace ddx
