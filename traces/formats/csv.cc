#include "traces/formats/csv.h"

#include <algorithm>

#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

constexpr std::size_t kMaxColumns = 1024;

}  // namespace

std::string_view file_name(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return std::string_view(path).substr(slash == std::string::npos ? 0 : slash + 1);
}

bool has_extension(const std::string& path, std::initializer_list<std::string_view> extensions) {
  const std::string whole = lower(file_name(path));
  std::string_view name = whole;
  if (name.ends_with(".gz")) name.remove_suffix(3);
  return std::any_of(extensions.begin(), extensions.end(), [&](std::string_view e) { return name.ends_with(e); });
}

std::string_view take_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

std::vector<std::string> cells_of(std::string_view row, char separator) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const char c = row[i];
    if (quoted) {
      if (c != '"') {
        cells.back() += c;
      } else if (i + 1 < row.size() && row[i + 1] == '"') {
        cells.back() += '"';
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == separator) {
      if (cells.size() == kMaxColumns) return cells;
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  for (std::string& cell : cells) cell = std::string(trimmed(cell));
  return cells;
}

std::vector<std::string> header_of(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::string_view row = take_line(text);
  return row.size() > kMaxCsvRow ? std::vector<std::string>() : cells_of(row);
}

std::optional<std::size_t> column(const std::vector<std::string>& header,
                                  std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    for (std::size_t i = 0; i < header.size(); ++i) {
      if (lower(header[i]) == name) return i;
    }
  }
  return std::nullopt;
}

}  // namespace ddx::formats
