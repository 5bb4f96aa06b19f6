// Page: lines of text for a terminal or a file, wrapped and indented, with colours where they are wanted.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace ddx::cli {

enum class Style { plain, bold, dim, red, yellow, blue, green };

class Page {
 public:
  Page(std::size_t width, bool color) : width_(width), color_(color) {}

  // `label`, then `text` wrapped, its further lines under the first: all text begins in column `indent`. Line breaks in
  // `text` are kept; its lines that begin with a space are tables or pictures and are not wrapped. No line comes out as
  // a command to the program that reads them (inert_line()).
  void paragraph(std::string_view label, std::size_t indent, std::string_view text, Style label_style = Style::plain,
                 Style text_style = Style::plain);
  void blank();  // one blank line, never two, none at the top
  void append(std::string_view lines) { text_ += lines; }
  Page fresh() const { return Page(width_, color_); }  // an empty one of the same kind
  std::string take() { return std::move(text_); }

 private:
  void put(std::string_view text, Style style);

  std::size_t width_;
  bool color_;
  std::string text_;
};

}  // namespace ddx::cli
