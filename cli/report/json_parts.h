// What the JSON documents of ddx (docs/report-schema.json, and that of `ddx info`) say alike.
#pragma once

#include <vector>

#include "cli/report/json_text.h"
#include "cli/report/report.h"

namespace ddx::cli {

Json json_of(const ReportInput& input);
Json json_of(const Diagnostic& diagnostic);

// An array of what `to_json` makes of each item.
template <class Item, class ToJson>
Json json_list(const std::vector<Item>& items, ToJson to_json) {
  Json list = Json::array();
  for (const Item& item : items) list.push_back(to_json(item));
  return list;
}

// "inputs", "world_size", "ranks_seen", "ranks_absent", in this order.
void add_what_was_read(Json& document, const Report& report);
// "diagnostics".
void add_diagnostics(Json& document, const Report& report);

}  // namespace ddx::cli
