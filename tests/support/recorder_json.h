// A dump of PyTorch's flight recorder as JSON, of one rank that has made one all_reduce and waits in it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace ddx::testing {

// Its group holds ranks 0..world-1. `file`: where the call stands, line 5; empty: not recorded.
inline std::string recorder_dump(int world, const std::string& description = "default_pg",
                                 const std::string& file = "") {
  using nlohmann::json;
  std::string members = "[0";
  for (int rank = 1; rank < world; ++rank) members += ", " + std::to_string(rank);
  json entry = {{"record_id", 0},
                {"pg_id", 0},
                {"process_group", {"0", description}},
                {"collective_seq_id", 1},
                {"p2p_seq_id", 0},
                {"op_id", 1},
                {"profiling_name", "nccl:all_reduce"},
                {"time_created_ns", 1700000000000000000},
                {"input_sizes", json::array({json::array({8})})},
                {"input_dtypes", {"Float"}},
                {"output_sizes", json::array({json::array({8})})},
                {"output_dtypes", {"Float"}},
                {"state", "scheduled"},
                {"is_p2p", false},
                {"retired", false},
                {"timeout_ms", 600000}};
  if (!file.empty()) entry["frames"] = json::array({{{"name", file}, {"filename", file}, {"line", 5}}});
  const json all = {{"version", "2.4"},
                    {"pg_config", {{"0", {{"name", "0"}, {"desc", description}, {"ranks", members + "]"}}}}},
                    {"entries", json::array({entry})}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace ddx::testing
