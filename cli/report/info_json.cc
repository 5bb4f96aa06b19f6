// "ddx.info/1": the inventory for programs.
#include "cli/report/inventory.h"
#include "cli/report/json_parts.h"
#include "cli/report/time_rows.h"

namespace ddx::cli {
namespace {

Json json_of(const std::map<std::string, RankSet>& ranks) {
  Json out = Json::object();
  for (const auto& [name, set] : ranks) out[name] = rank_list(set);
  return out;
}

Json json_of(const std::map<std::string, std::uint64_t>& counts) {
  Json out = Json::object();
  for (const auto& [name, count] : counts) out[name] = count;
  return out;
}

Json json_of(const GroupInventory& group) {
  Json sequences = Json::array();
  for (const auto& [range, ranks] : group.sequences) {
    sequences.push_back({{"first", range.first}, {"last", range.second}, {"ranks", rank_list(ranks)}});
  }
  return {{"name", group.name},
          {"description", group.description},
          {"size", group.size ? Json(*group.size) : Json(nullptr)},
          {"members", rank_list(group.members)},
          {"seen", rank_list(group.seen)},
          {"operations", json_of(group.operations)},
          {"states", json_of(group.states)},
          {"sequences", std::move(sequences)}};
}

}  // namespace

std::string render_info_json(const Inventory& inventory) {
  Json formats = Json::object();
  for (const auto& [name, count] : inventory.formats) {
    formats[name] = {{"files", count.files}, {"ranks", rank_list(count.ranks)}};
  }
  Json events = Json::object();
  for (const auto& [name, count] : inventory.events) {
    events[name] = {{"count", count.count}, {"ranks", rank_list(count.ranks)}};
  }
  const Report& report = inventory.report;
  Json out;
  out["schema"] = "ddx.info/1";
  out["command"] = "info";
  out["formats"] = std::move(formats);
  add_what_was_read(out, report);
  out["hosts"] = json_of(inventory.hosts);
  out["backends"] = json_of(inventory.backends);
  out["library_versions"] = json_of(inventory.versions);
  out["records"] = inventory.records;
  out["records_without_rank"] = inventory.records_without_rank;
  out["claimed_twice"] = rank_list(inventory.claimed_twice);
  out["head_lost"] = rank_list(inventory.head_lost);
  out["tail_lost"] = rank_list(inventory.tail_lost);
  out["operations"] = inventory.operations;
  out["groups"] = json_list(inventory.groups, [](const GroupInventory& group) { return json_of(group); });
  out["events"] = std::move(events);
  if (!inventory.times.empty()) out["times"] = times_json(inventory.times);
  add_diagnostics(out, report);
  return json_text(out);
}

}  // namespace ddx::cli
