#include "traces/formats/lenient_json.h"

#include <algorithm>
#include <array>

#include "base/printable.h"

namespace ddx::formats {
namespace {

class Mender {
 public:
  explicit Mender(std::string_view text) : text_(text) { out_.text.reserve(text.size()); }

  MendedJson mend() {
    while (at_ < text_.size()) {
      if (quoted_) {
        in_string();
      } else {
        between();
      }
    }
    return std::move(out_);
  }

 private:
  void keep(std::size_t length = 1) {
    out_.text += text_.substr(at_, length);
    at_ += length;
  }
  void replace(std::size_t length, std::string_view with) {
    out_.text += with;
    at_ += length;
    ++out_.mends;
  }

  void in_string() {
    const char c = text_[at_];
    if (c == '"') {
      quoted_ = false;
      return keep();
    }
    if (c == '\\') return escape();
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) return replace(1, " ");
    if (byte < 0x80) return keep();
    const CodePoint point = code_point_at(text_, at_);
    if (point.value == 0xFFFD && point.length == 1) return replace(1, "\xEF\xBF\xBD");
    keep(point.length);
  }

  void escape() {
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (std::string_view("\"\\/bfnrt").find(next) != std::string_view::npos && next != '\0') return keep(2);
    const std::string_view digits = text_.substr(std::min(at_ + 2, text_.size()), 4);
    const bool coded = next == 'u' && digits.size() == 4 &&
                       digits.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
    if (coded) return keep(6);
    replace(1, "\\\\");
  }

  void between() {
    static constexpr std::array<std::string_view, 6> kNoNumbers{"NaN", "nan", "Infinity", "-Infinity", "-inf", "inf"};
    const char c = text_[at_];
    if (c == '"') {
      quoted_ = true;
      return keep();
    }
    if (c == ',') {
      const std::size_t next = text_.find_first_not_of(" \t\r\n", at_ + 1);
      const bool closes = next != std::string_view::npos && (text_[next] == ']' || text_[next] == '}');
      return closes ? replace(1, "") : keep();
    }
    if (c == 'N' || c == 'n' || c == 'I' || c == 'i' || c == '-') {
      for (const std::string_view word : kNoNumbers) {
        if (text_.substr(at_).starts_with(word)) return replace(word.size(), "null");
      }
    }
    keep();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool quoted_ = false;
  MendedJson out_;
};

}  // namespace

MendedJson mend_json(std::string_view text) { return Mender(text).mend(); }

}  // namespace ddx::formats
