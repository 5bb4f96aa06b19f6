// Options that take numbers. What is no decimal number in the range is wrong usage: status 2, with the option, what was
// given and what was expected.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ddx::cli {

// "1.5", "2e3"; nullopt: no finite decimal number.
std::optional<double> parse_decimal(std::string_view text);

struct CountRange {
  std::uint64_t least = 0;
  std::uint64_t most = UINT64_MAX;
};
// A whole number, in decimal digits. `take` has it once it is read.
CLI::Option* add_count(CLI::App& app, const std::string& name, CountRange range,
                       const std::function<void(std::uint64_t)>& take, const std::string& help);

// A number from 0 to `most`.
CLI::Option* add_amount(CLI::App& app, const std::string& name, double& value, double most, const std::string& help);
CLI::Option* add_amount(CLI::App& app, const std::string& name, double most, const std::function<void(double)>& take,
                        const std::string& help);

}  // namespace ddx::cli
