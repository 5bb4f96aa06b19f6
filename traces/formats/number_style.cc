#include "traces/formats/number_style.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

// Without "_" and without a sign in front.
std::string bare(std::string_view text) {
  std::string out(text);
  std::erase(out, '_');
  if (!out.empty() && (out.front() == '-' || out.front() == '+')) out.erase(0, 1);
  return out;
}

bool all_digits(std::string_view text) { return std::all_of(text.begin(), text.end(), is_digit); }

// "1", "12", "1,234", "12,345,678" with `mark` between; never "0,123".
bool grouped(std::string_view text, char mark) {
  const std::size_t first = std::min(text.find(mark), text.size());
  if (first == text.size()) return !text.empty() && all_digits(text);
  if (first == 0 || first > 3 || text.front() == '0' || !all_digits(text.substr(0, first))) return false;
  for (std::string_view rest = text.substr(first); !rest.empty(); rest.remove_prefix(4)) {
    if (rest.size() < 4 || rest.front() != mark || !all_digits(rest.substr(1, 3))) return false;
  }
  return true;
}

// Whether `text` is a number with this decimal mark, and the other one between thousands at the most.
bool written_with(std::string_view text, char decimal, char thousands) {
  const std::size_t at = text.find(decimal);
  const std::string_view whole = text.substr(0, at);
  if (at == std::string_view::npos) return grouped(whole, thousands);
  const std::string_view fraction = text.substr(at + 1);
  return all_digits(fraction) && (whole.empty() ? !fraction.empty() : grouped(whole, thousands));
}

}  // namespace

void NumberStyle::see(std::string_view cell, std::uint64_t line, bool whole) {
  const std::string text = bare(cell);
  const auto commas = std::count(text.begin(), text.end(), ','), points = std::count(text.begin(), text.end(), '.');
  if (commas + points == 0) return;
  bool as_point = written_with(text, '.', ','), as_comma = written_with(text, ',', '.');
  if (whole) {
    as_point = as_point && points == 0;
    as_comma = as_comma && commas == 0;
  }
  if (as_point == as_comma) return;  // both, or no number
  std::optional<Witness>& witness = as_point ? point_ : comma_;
  if (!witness) witness = Witness{printable(cell, 64), line};
}

DecimalMark NumberStyle::mark(const std::string& path) const {
  if (point_ && comma_) {
    throw Error(path, {std::nullopt, comma_->line},
                "expected one way to write numbers: \"" + comma_->cell + "\" has a decimal comma, and \"" +
                    point_->cell + "\" in line " + std::to_string(point_->line) + " a decimal point");
  }
  return comma_ ? DecimalMark::comma : DecimalMark::point;
}

std::optional<double> number_in(std::string_view text, DecimalMark mark) {
  std::string plain = bare(text);
  const bool negative = !text.empty() && text.front() == '-';
  const char decimal = mark == DecimalMark::point ? '.' : ',', thousands = mark == DecimalMark::point ? ',' : '.';
  if (plain.find(thousands) != std::string::npos ||
      (mark == DecimalMark::comma && plain.find(',') != std::string::npos)) {
    if (!written_with(plain, decimal, thousands)) return std::nullopt;
    std::erase(plain, thousands);
    std::replace(plain.begin(), plain.end(), decimal, '.');
  }
  if (plain.empty() || plain.front() == '-') return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (error != std::errc() || end != plain.data() + plain.size() || !std::isfinite(value)) return std::nullopt;
  return negative ? -value : value;
}

}  // namespace ddx::formats
