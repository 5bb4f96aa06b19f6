// Text that came from input files, made safe to show: what is in a log must not move the cursor, change colours,
// reorder a line or break an encoding.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ddx::cli {

struct CodePoint {
  char32_t value = 0;      // U+FFFD where the bytes are no UTF-8
  std::size_t length = 1;  // in bytes
};
// The code point that begins at `at`, which must be inside `text`.
CodePoint code_point_at(std::string_view text, std::size_t at);
void append_utf8(std::string& out, char32_t value);

// Terminal escape sequences, control characters and direction overrides removed, bytes that are no UTF-8 replaced.
// Line breaks and tabs become spaces.
std::string printable_line(std::string_view text);
// The same, with line breaks kept.
std::string printable_lines(std::string_view text);

// At most `columns` code points, "..." at the end where some were cut.
std::string shortened(std::string_view text, std::size_t columns);
// In code points: what a terminal shows, but for wide and combining characters.
std::size_t columns_of(std::string_view text);

}  // namespace ddx::cli
