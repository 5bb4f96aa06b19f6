// Text that came from input files, made safe to print: what is in a log must not move the cursor, change colours,
// reorder a line, break an encoding, or be taken for a command by the program that reads our output.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/printable.h"

namespace ddx::cli {

// printable_text(), and "##[" set apart: runners of CI take that for a command wherever it stands in a line.
std::string printable_line(std::string_view text);
// The same, with line breaks kept.
std::string printable_lines(std::string_view text);

// `line` as it may be printed as a line of its own: "::" at its beginning, behind blanks of whatever kind, which
// runners of CI take for a command, is set off by "> ".
std::string inert_line(std::string_view line);
// The same for each line of `text`.
std::string inert_lines(std::string_view text);

// At most `columns` code points, "..." at the end where some were cut.
std::string shortened(std::string_view text, std::size_t columns);
// In code points: what a terminal shows, but for wide and combining characters.
std::size_t columns_of(std::string_view text);

}  // namespace ddx::cli
