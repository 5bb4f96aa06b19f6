// Text that is meant as JSON and is not quite.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ddx::formats {

struct MendedJson {
  std::string text;
  std::uint64_t mends = 0;  // 0: nothing was found to mend
};

// NaN and Infinity become null; commas before a closing bracket go; in strings, a backslash that escapes nothing is
// doubled, control characters become blanks, and bytes that are no UTF-8 become U+FFFD. Quotes that are not escaped
// cannot be told from those that close a string.
MendedJson mend_json(std::string_view text);

}  // namespace ddx::formats
