#include "cli/report/printable.h"

namespace ddx::cli {
namespace {

// The text with each of its lines changed by `change`.
template <class Change>
std::string by_line(std::string_view text, Change change) {
  std::string out;
  while (true) {
    const std::size_t end = text.find('\n');
    out += change(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

// White space as Unicode and the runners' own language have it.
bool is_blank(char32_t c) {
  return c <= 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

}  // namespace

std::string printable_line(std::string_view text) {
  std::string out = printable_text(text);
  for (std::size_t at = out.find("##["); at != std::string::npos; at = out.find("##[", at)) out.insert(at + 2, 1, ' ');
  return out;
}

std::string printable_lines(std::string_view text) { return by_line(text, printable_line); }

std::string inert_line(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size()) {
    const CodePoint point = code_point_at(line, at);
    if (!is_blank(point.value)) break;
    at += point.length;
  }
  const std::string_view rest = line.substr(at);
  if (!rest.starts_with("::") && !rest.starts_with("##[")) return std::string(line);
  return std::string(line.substr(0, at)) + "> " + std::string(rest);
}

std::string inert_lines(std::string_view text) { return by_line(text, inert_line); }

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
