#include "cli/report/text_layout.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/report/printable.h"

namespace ddx::cli {
namespace {

constexpr std::size_t kNarrowest = 20;

std::string_view code_of(Style style) {
  switch (style) {
    case Style::plain: return "";
    case Style::bold: return "\x1b[1m";
    case Style::dim: return "\x1b[2m";
    case Style::red: return "\x1b[1;31m";
    case Style::yellow: return "\x1b[1;33m";
    case Style::blue: return "\x1b[1;34m";
    case Style::green: return "\x1b[1;32m";
  }
  return "";
}

// One line of `columns` at most where blanks allow it. A word that is too long stands alone: paths must stay whole.
void wrap_line(std::string_view line, std::size_t columns, std::vector<std::string>& out) {
  std::string current;
  std::size_t used = 0;
  while (!line.empty()) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(word.size());
    const std::size_t length = columns_of(word);
    if (used > 0 && used + 1 + length > columns) {
      out.push_back(std::move(current));
      current.clear();
      used = 0;
    }
    if (used > 0) {
      current += ' ';
      ++used;
    }
    current += word;
    used += length;
  }
  out.push_back(std::move(current));
}

std::vector<std::string> wrap(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines;
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  while (true) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (line.starts_with(' ')) {
      lines.emplace_back(line);
    } else {
      wrap_line(line, columns, lines);
    }
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

void Page::put(std::string_view text, Style style) {
  const bool styled = color_ && style != Style::plain && !text.empty();
  if (styled) text_ += code_of(style);
  text_ += text;
  if (styled) text_ += "\x1b[0m";
}

void Page::paragraph(std::string_view label, std::size_t indent, std::string_view text, Style label_style,
                     Style text_style) {
  const std::size_t columns = width_ > indent + kNarrowest ? width_ - indent : kNarrowest;
  const std::size_t label_columns = columns_of(label);
  put(label, label_style);
  bool first = true;
  for (const std::string& line : wrap(text, columns)) {
    if (!line.empty()) {
      const std::size_t used = first ? label_columns : 0;
      // A label that fills its column still stands apart from the text.
      text_.append(used < indent ? indent - used : (used > 0 ? 1 : 0), ' ');
      put(used > 0 ? line : inert_line(line), text_style);
    }
    text_ += '\n';
    first = false;
  }
}

void Page::blank() {
  if (!text_.empty() && !text_.ends_with("\n\n")) text_ += '\n';
}

}  // namespace ddx::cli
