// "ddx.info/1": the inventory for programs.
#include "cli/report/inventory.h"
#include "cli/report/json_text.h"

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

Json json_of(const ReportInput& input) {
  Json out{{"path", input.path}, {"format", input.format}, {"ranks", rank_list(input.ranks)}};
  if (!input.note.empty()) out["note"] = input.note;
  if (input.unreadable) out["unreadable"] = true;
  return out;
}

Json json_of(const Diagnostic& diagnostic) {
  return {{"name", diagnostic.name},
          {"severity", name_of(diagnostic.severity)},
          {"count", diagnostic.count},
          {"detail", diagnostic.detail}};
}

template <class Item>
Json json_list(const std::vector<Item>& items) {
  Json list = Json::array();
  for (const Item& item : items) list.push_back(json_of(item));
  return list;
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
  out["inputs"] = json_list(report.inputs);
  out["world_size"] = report.world_size ? Json(*report.world_size) : Json(nullptr);
  out["ranks_seen"] = rank_list(report.ranks_seen);
  out["ranks_absent"] = rank_list(report.ranks_absent);
  out["hosts"] = json_of(inventory.hosts);
  out["backends"] = json_of(inventory.backends);
  out["library_versions"] = json_of(inventory.versions);
  out["records"] = inventory.records;
  out["records_without_rank"] = inventory.records_without_rank;
  out["claimed_twice"] = rank_list(inventory.claimed_twice);
  out["head_lost"] = rank_list(inventory.head_lost);
  out["tail_lost"] = rank_list(inventory.tail_lost);
  out["operations"] = inventory.operations;
  out["groups"] = json_list(inventory.groups);
  out["events"] = std::move(events);
  out["diagnostics"] = json_list(report.diagnostics);
  return json_text(out);
}

}  // namespace ddx::cli
