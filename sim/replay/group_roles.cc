// What a group is for, by its name.
#include <algorithm>
#include <array>
#include <cctype>

#include "sim/replay/virtual_ranks.h"

namespace ddx::sim {
namespace {

// Words of names as PyTorch, Megatron, DeepSpeed and JAX's users write them. A group with a word of the first kind is
// data parallel whatever else it is: Megatron's "EXPERT_DATA_PARALLEL_GROUP" holds the same experts of all replicas.
constexpr std::array<std::string_view, 12> kDataWords{"dp",      "ddp",  "fsdp",    "hsdp",  "data", "replicate",
                                                      "replica", "zero", "default", "world", "edp",  "dpcp"};
constexpr std::array<std::string_view, 15> kModelWords{"tp",       "tensor",   "mp",     "model",     "pp",
                                                       "pipe",     "pipeline", "cp",     "context",   "sp",
                                                       "sequence", "ep",       "expert", "embedding", "stage"};

// "EXPERT_DATA_PARALLEL_GROUP" -> expert, data, parallel, group; "dp0" -> dp.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

template <class Words>
bool has_any(const std::vector<std::string>& words, const Words& wanted) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::find(wanted.begin(), wanted.end(), word) != wanted.end();
  });
}

// "dp" names dp0, dp1, dp_2 as well.
bool is_named(std::string_view name, std::string_view wanted) {
  if (!name.starts_with(wanted)) return false;
  const std::string_view rest = name.substr(wanted.size());
  return std::all_of(rest.begin(), rest.end(),
                     [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; });
}

}  // namespace

bool is_named(const Trace& trace, const Communicator& communicator, std::string_view wanted) {
  const std::string_view description = trace.text(communicator.description);
  return is_named(trace.text(communicator.name), wanted) || (!description.empty() && is_named(description, wanted));
}

std::optional<GroupRole> role_of(const Trace& trace, const Communicator& communicator, const RoleMap& roles) {
  const std::string_view name = trace.text(communicator.name), description = trace.text(communicator.description);
  for (const auto& [wanted, role] : roles.by_name) {
    if (is_named(trace, communicator, wanted)) return role;
  }
  // Also of groups that hold all ranks: a job may be all tensor parallel.
  for (const std::string_view text : {description, name}) {
    const auto words = words_of(text);
    if (has_any(words, kDataWords)) return GroupRole::data;
    if (has_any(words, kModelWords)) return GroupRole::model;
  }
  if (trace.world_size && communicator.members.size() == *trace.world_size) return GroupRole::data;
  return std::nullopt;
}

}  // namespace ddx::sim
