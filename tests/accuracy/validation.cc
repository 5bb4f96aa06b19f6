#include "tests/accuracy/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "sim/cluster/names.h"

namespace ddx::sim {
namespace {

const std::string kFolder = DDX_SOURCE_DIR "/tests/data/validation/";

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + " cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string kind_of(const CollectiveRun& run) {
  const bool inside = run.placement.nodes <= run.cluster.domain_nodes;
  return fmt::format("{}, {}, {}", run.cluster.gpu.name, inside ? "one node" : name_of(run.cluster.fabric),
                     run.collective);
}

nlohmann::json excluded_json() { return nlohmann::json::parse(text_of(kFolder + "excluded.json")); }

bool is_always_held_out(const nlohmann::json& excluded, const std::string& id) {
  for (const auto& item : excluded.at("held_out")) {
    if (item.at("id").get<std::string>() == id) return true;
  }
  return false;
}

void exclude(const nlohmann::json& excluded, std::vector<ValidationRun>& runs) {
  for (const auto& item : excluded.at("excluded")) {
    for (ValidationRun& run : runs) {
      if (run.run.id != item.at("id").get<std::string>()) continue;
      for (std::size_t i = 0; i < run.measured.size(); ++i) {
        const std::optional<std::uint64_t>& bytes = run.run.bytes[i];
        if (bytes && *bytes >= item.at("from").get<std::uint64_t>() && *bytes <= item.at("to").get<std::uint64_t>()) {
          run.measured[i].reset();
        }
      }
    }
  }
}

}  // namespace

std::vector<ValidationRun> validation_runs() {
  const std::string text = text_of(kFolder + "nccl_tests.json");
  const std::vector<std::vector<std::optional<double>>> measured = read_measured(text, "nccl_tests.json");
  std::vector<ValidationRun> runs;
  for (CollectiveRun& run : read_runs(text, "nccl_tests.json")) {
    ValidationRun one{std::move(run), measured.at(runs.size()), "", false};
    one.kind = kind_of(one.run);
    runs.push_back(std::move(one));
  }
  const nlohmann::json excluded = excluded_json();
  exclude(excluded, runs);
  std::erase_if(runs, [](const ValidationRun& run) { return points_of({&run}).empty(); });
  std::sort(runs.begin(), runs.end(),
            [](const ValidationRun& a, const ValidationRun& b) { return a.run.id < b.run.id; });
  std::map<std::string, int> seen;
  for (ValidationRun& run : runs) {
    run.calibrates = !is_always_held_out(excluded, run.run.id) && seen[run.kind]++ % 2 == 0;
  }
  return runs;
}

std::vector<Point> points_of(const std::vector<const ValidationRun*>& runs) {
  std::vector<Point> points;
  for (const ValidationRun* run : runs) {
    for (const MeasuredCall& call : calls_of(run->run, run->measured)) points.push_back({run, call.call, call.micros});
  }
  return points;
}

NcclTimes fit_runs(const std::vector<const ValidationRun*>& runs) {
  std::vector<MeasuredCall> calls;
  for (const ValidationRun* run : runs) {
    const std::vector<MeasuredCall> more = calls_of(run->run, run->measured);
    calls.insert(calls.end(), more.begin(), more.end());
  }
  return fit(calls);
}

}  // namespace ddx::sim
