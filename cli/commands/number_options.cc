#include "cli/commands/number_options.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/units.h"
#include "traces/formats/ops_text.h"

namespace ddx::cli {
namespace {

[[noreturn]] void fail(const std::string& name, const std::string& text, const std::string& expectation) {
  throw CLI::ValidationError(fmt::format("{} '{}': expected {}", name, text, expectation));
}

std::string text_of(const CountRange& range) {
  if (range.most == UINT64_MAX) return fmt::format("a whole number from {}", range.least);
  return fmt::format("a whole number from {} to {}", range.least, format_count(range.most));
}

}  // namespace

std::optional<double> parse_decimal(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

CLI::Option* add_count(CLI::App& app, const std::string& name, CountRange range,
                       const std::function<void(std::uint64_t)>& take, const std::string& help) {
  const auto read = [name, range, take](const std::string& text) {
    const auto number = formats::parse_unsigned(text);
    if (!number || *number < range.least || *number > range.most) fail(name, text, text_of(range));
    take(*number);
  };
  return app.add_option_function<std::string>(name, read, help)->option_text("N");
}

CLI::Option* add_amount(CLI::App& app, const std::string& name, double& value, double most, const std::string& help) {
  return add_amount(
      app, name, most, [&value](double number) { value = number; }, help);
}

CLI::Option* add_amount(CLI::App& app, const std::string& name, double most, const std::function<void(double)>& take,
                        const std::string& help) {
  const auto read = [name, most, take](const std::string& text) {
    const auto number = parse_decimal(text);
    if (!number || *number < 0 || *number > most) fail(name, text, fmt::format("a number from 0 to {:g}", most));
    take(*number);
  };
  return app.add_option_function<std::string>(name, read, help)->option_text("X");
}

}  // namespace ddx::cli
