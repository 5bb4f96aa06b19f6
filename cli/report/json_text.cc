#include "cli/report/json_text.h"

#include <algorithm>
#include <vector>

namespace ddx::cli {
namespace {

bool is_simple(const Json& value) {
  if (!value.is_structured() || value.empty()) return true;
  return value.is_array() &&
         std::all_of(value.begin(), value.end(), [](const Json& item) { return !item.is_structured(); });
}

std::string scalar_text(const Json& value) { return value.dump(-1, ' ', true, Json::error_handler_t::replace); }

// Reports nest a few levels by their own schema, never by input: recursion is bounded.
void append(std::string& out, const Json& value, std::size_t level) {
  if (is_simple(value)) {
    if (!value.is_array()) {
      out += scalar_text(value);
      return;
    }
    out += '[';
    for (std::size_t i = 0; i < value.size(); ++i) out += (i == 0 ? "" : ", ") + scalar_text(value[i]);
    out += ']';
    return;
  }
  const std::string margin(2 * (level + 1), ' ');
  const bool object = value.is_object();
  out += object ? '{' : '[';
  bool first = true;
  for (auto item = value.begin(); item != value.end(); ++item) {
    out += first ? "\n" : ",\n";
    first = false;
    out += margin;
    if (object) out += scalar_text(Json(item.key())) + ": ";
    append(out, item.value(), level + 1);
  }
  out += '\n' + std::string(2 * level, ' ') + (object ? '}' : ']');
}

}  // namespace

std::string json_text(const Json& value) {
  std::string out;
  append(out, value, 0);
  out += '\n';
  return out;
}

Json rank_list(const RankSet& ranks) {
  Json list = Json::array();
  for (RankId rank : ranks) list.push_back(rank.value);
  return list;
}

}  // namespace ddx::cli
