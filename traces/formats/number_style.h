// How a table writes numbers. "1,234" is a thousand in one country and a little more than one in another; which it is
// in a table follows from all its numbers together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ddx::formats {

enum class DecimalMark { point, comma };

// Looks at a table's numbers, then says what their marks mean.
class NumberStyle {
 public:
  // `whole`: the column holds whole numbers, so that "1,024" cannot have a decimal comma. What is no number is passed
  // over.
  void see(std::string_view cell, std::uint64_t line, bool whole);
  // A comma, where some number can be read no other way ("1000,5", "0,75", "1.234.567"); else a point, with commas
  // between thousands. Throws Error of `path` where two numbers contradict each other, and names both.
  DecimalMark mark(const std::string& path) const;

 private:
  struct Witness {
    std::string cell;
    std::uint64_t line = 0;
  };
  std::optional<Witness> point_, comma_;  // the first number that speaks for each
};

// nullopt: no number so written, or not finite. Other marks may only stand between groups of three digits; "_" may
// stand anywhere.
std::optional<double> number_in(std::string_view text, DecimalMark mark);

}  // namespace ddx::formats
