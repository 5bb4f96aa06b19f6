// Text that came from input files, made safe to keep and to show: what is in a file must not move the cursor, change
// colours, reorder a line, begin a new one or break an encoding.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ddx {

struct CodePoint {
  char32_t value = 0;      // U+FFFD where the bytes are no UTF-8
  std::size_t length = 1;  // in bytes
};
// The code point that begins at `at`, which must be inside `text`.
CodePoint code_point_at(std::string_view text, std::size_t at);
void append_utf8(std::string& out, char32_t value);

// What printable_text() leaves as it is: most of what files hold, and quick to tell.
bool is_plain_ascii(std::string_view text);

// One line of valid UTF-8: terminal escape sequences, control characters and direction overrides are removed, bytes
// that are no UTF-8 become U+FFFD, line breaks and tabs become spaces. At most `max_bytes` bytes, cut between
// characters.
std::string printable_text(std::string_view text, std::size_t max_bytes = std::string_view::npos);

}  // namespace ddx
