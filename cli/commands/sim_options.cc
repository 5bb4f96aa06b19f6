#include "cli/commands/sim_options.h"

#include <fmt/format.h>

#include <charconv>

#include "cli/commands/common_options.h"
#include "traces/formats/ops_text.h"

namespace ddx::cli {
namespace {

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

[[noreturn]] void bad_injection(const std::string& text, std::string_view why) {
  throw UsageError(fmt::format(
      "--inject '{}': {}. Expected FAULT@RANK:OP, with FAULT one of skip, duplicate, swap, resize[=COUNT], retype, "
      "reroot[=POSITION], kill, delay[=TIME], and OP a number from 0 in the rank's list, or GROUP/SEQ",
      text, why));
}

}  // namespace

void add_sim_options(CLI::App& app, SimOptions& options) {
  app.add_option("--world-size", options.world_size, "Lay the trace over so many ranks, by replicas")
      ->check(CLI::Range(1, 1 << 20))
      ->option_text("N");
  app.add_option("--map", options.map, "What a group is for: GROUP=data (it grows with the replicas) or GROUP=model")
      ->option_text("GROUP=ROLE");
  app.add_option("--inject", options.injections,
                 "Put a fault into the programs: skip, duplicate, swap, resize, retype, reroot, kill, delay")
      ->option_text("FAULT@RANK:OP");
  app.add_flag("--blocking", options.blocking, "Every call blocks until it is complete: no streams, nothing asynchronous");
  app.add_flag("--streams", options.streams, "Every call returns at once and runs in order on its stream, as with NCCL");
  app.add_flag("--strict-groups", options.strict_groups, "What is posted together starts only once all partners can");
  app.add_option("--eager", options.eager, "Sends of up to so many bytes complete without their receive")
      ->option_text("BYTES");
  app.add_option("--flat", options.flat, "Time it on a flat network, a port of this rate and latency for every rank")
      ->option_text("RATE,LATENCY");
  app.add_option("--algorithm", options.algorithm, "Take this algorithm for the collectives that it can carry out")
      ->option_text("NAME");
  app.add_option("--compute-scale", options.compute_scale, "Computations take so many times as long as recorded")
      ->check(CLI::Range(0.0, 4000.0))
      ->option_text("X");
  app.add_option("--slow", options.slow, "Computations of one rank take so many times as long: 3=1.5")->option_text("RANK=X");
}

sim::RoleMap role_map(const std::vector<std::string>& map) {
  sim::RoleMap roles;
  for (const std::string& text : map) {
    const auto at = text.find('=');
    const std::string role = at == std::string::npos ? "" : text.substr(at + 1);
    if (at == 0 || (role != "data" && role != "model")) {
      throw UsageError(fmt::format("--map '{}': expected GROUP=data or GROUP=model", text));
    }
    roles.by_name[text.substr(0, at)] = role == "data" ? sim::GroupRole::data : sim::GroupRole::model;
  }
  return roles;
}

sim::Injection injection(const std::string& text) {
  sim::Injection made;
  const auto at = text.find('@');
  const auto colon = text.find(':', at == std::string::npos ? 0 : at);
  if (at == std::string::npos || colon == std::string::npos) bad_injection(text, "it does not say where");
  const std::string head = text.substr(0, at), rank = text.substr(at + 1, colon - at - 1), place = text.substr(colon + 1);
  const auto equals = head.find('=');
  const std::string value = equals == std::string::npos ? "" : head.substr(equals + 1);
  const auto fault = sim::injected_fault_from(head.substr(0, equals));
  if (!fault) bad_injection(text, fmt::format("there is no fault '{}'", head.substr(0, equals)));
  made.fault = *fault;
  const auto number_of_rank = number(rank);
  if (!number_of_rank || *number_of_rank > INT32_MAX) bad_injection(text, fmt::format("'{}' is no rank", rank));
  made.rank = RankId(static_cast<std::int64_t>(*number_of_rank));
  const auto slash = place.rfind('/');
  if (slash != std::string::npos) made.place.group = place.substr(0, slash);
  const auto index = number(slash == std::string::npos ? place : place.substr(slash + 1));
  if (!index) bad_injection(text, fmt::format("'{}' is no operation", place));
  made.place.index = *index;
  if (equals == std::string::npos) return made;
  if (made.fault == sim::InjectedFault::delay) {
    made.delay = formats::parse_ops_duration(value);
    if (!made.delay) bad_injection(text, fmt::format("'{}' is no time, such as 2ms", value));
  } else {
    made.value = number(value);
    if (!made.value) bad_injection(text, fmt::format("'{}' is no number", value));
  }
  return made;
}

}  // namespace ddx::cli
