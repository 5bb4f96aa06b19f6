// Rows of comma-separated tables, and what their files are called.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddx::formats {

// A longer row is none of a table that ddx knows.
constexpr std::size_t kMaxCsvRow = 64 * 1024;

std::string_view file_name(const std::string& path);
// Whether the file's name ends so, in any case; a ".gz" behind it does not count.
bool has_extension(const std::string& path, std::initializer_list<std::string_view> extensions);

// The first line of `rest`, taken off it, without its end.
std::string_view take_line(std::string_view& rest);

// The cells of one row, without blanks around them: quoted ones may hold separators and doubled quotes, but no line
// breaks. At most 1,024.
std::vector<std::string> cells_of(std::string_view row, char separator = ',');

// The cells of the first row; empty where that is too long to be one.
std::vector<std::string> header_of(std::string_view text);

// The first of `names` (in lower case) that the header has in any case.
std::optional<std::size_t> column(const std::vector<std::string>& header,
                                  std::initializer_list<std::string_view> names);

}  // namespace ddx::formats
