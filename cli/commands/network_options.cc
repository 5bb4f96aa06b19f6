#include "cli/commands/network_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "sim/cluster/cluster_file.h"

namespace ddx::cli {
namespace {

// What kinds of calls there are, and among how many ranks.
std::map<OpKind, std::set<std::uint32_t>> calls_of(const Trace& trace) {
  std::map<OpKind, std::set<std::uint32_t>> found;
  std::map<ProgramId, UnlikeCalls> known;
  for (const RankRecord& record : trace.ranks) {
    const auto [calls, fresh] = known.try_emplace(record.program);
    if (fresh) calls->second = trace.program(record).unlike_calls();
    for (const auto& [slot, id] : calls->second) {
      const OpKind kind = trace.signature(id).kind;
      if (slot >= record.comms.size() || sim::algorithms_for(kind).empty()) continue;
      const std::size_t members = trace.communicator(record.comms[slot]).members.size();
      found[kind].insert(is_p2p(kind) ? 2 : static_cast<std::uint32_t>(members));
    }
  }
  return found;
}

std::string names_of(const std::vector<OpKind>& kinds) {
  std::vector<std::string_view> names;
  for (const OpKind kind : kinds) names.push_back(name_of(kind));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::vector<CLI::Option*> add_network_options(CLI::App& app, NetworkOptions& options, FileOptions& files) {
  CLI::Option* cluster = app.add_option("--cluster", options.cluster)->option_text("CLUSTER");
  files.inputs.push_back(cluster);
  CLI::Option* flat =
      app.add_option("--flat", options.flat, "Time it on a flat network: a port of 50GB/s,1us for every rank")
          ->option_text("RATE,LATENCY");
  CLI::Option* algorithm =
      app.add_option("--algorithm", options.algorithm, "Take this algorithm for the collectives that it can carry out")
          ->option_text("NAME");
  return {cluster, flat, algorithm};
}

std::optional<sim::Cluster> network_of(const NetworkOptions& options) {
  if (!options.flat.empty() && !options.cluster.empty()) {
    throw UsageError("--flat and --cluster are two networks: give one");
  }
  if (!options.flat.empty()) return sim::flat(options.flat);
  if (!options.cluster.empty()) return sim::read_cluster(options.cluster);
  return std::nullopt;
}

const sim::Algorithm* algorithm_named(const std::string& name) {
  if (name.empty()) return nullptr;
  const sim::Algorithm* algorithm = sim::find_algorithm(name);
  if (algorithm != nullptr) return algorithm;
  std::vector<std::string_view> names;
  for (const sim::Algorithm& known : sim::algorithms()) names.push_back(known.name);
  throw UsageError(
      fmt::format("--algorithm '{}': there is none of that name. Expected one of {}", name, fmt::join(names, ", ")));
}

const sim::Algorithm* taken_algorithm(const sim::Algorithm* algorithm, const Trace& trace,
                                      const std::vector<std::uint32_t>& factors, std::vector<std::string>& told) {
  if (algorithm == nullptr) return nullptr;
  std::vector<OpKind> taking, others;
  for (const auto& [kind, sizes] : calls_of(trace)) {
    const auto takes = [&, of = kind](std::uint32_t ranks) {
      return algorithm->runs(of, sim::flat_members(ranks)) ||
             std::any_of(factors.begin(), factors.end(),
                         [&](std::uint32_t factor) { return algorithm->runs(of, sim::flat_members(ranks * factor)); });
    };
    if (std::any_of(sizes.begin(), sizes.end(), takes)) {
      taking.push_back(kind);
    } else if (is_collective(kind)) {
      others.push_back(kind);
    }
  }
  if (taking.empty()) {
    told.push_back(fmt::format(
        "--algorithm {}: nothing takes it. It carries out {}{}, and the trace has {}: all is timed as without it",
        algorithm->name, names_of({algorithm->kinds.begin(), algorithm->kinds.end()}),
        algorithm->fits == nullptr ? "" : " of some numbers of ranks",
        others.empty() ? "no collective" : names_of(others)));
    return nullptr;
  }
  if (!others.empty()) {
    told.push_back(fmt::format("--algorithm {}: {} {} it; {} {} what the library chooses", algorithm->name,
                               names_of(taking), taking.size() == 1 ? "takes" : "take", names_of(others),
                               others.size() == 1 ? "takes" : "take"));
  }
  return algorithm;
}

}  // namespace ddx::cli
