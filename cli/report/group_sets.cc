#include "cli/report/group_sets.h"

#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace ddx::cli {
namespace {

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? std::numeric_limits<std::uint64_t>::max() : result;
}

// "mesh_tp_17" -> "mesh_tp_#".
std::string without_numbers(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c < '0' || c > '9') {
      out += c;
    } else if (!out.ends_with('#')) {
      out += '#';
    }
  }
  return out;
}

// What is equal for groups that are alike.
using Kind = std::tuple<std::optional<std::uint64_t>, std::string, std::string>;

Kind kind_of(const GroupInventory& group) {
  std::string operations;
  for (const auto& [name, count] : group.operations) operations += name + ' ';
  return {group.size, std::move(operations),
          without_numbers(group.description.empty() ? group.name : group.description)};
}

GroupInventory sum_of(const std::vector<const GroupInventory*>& groups) {
  GroupInventory all = *groups.front();
  std::vector<RankId> members, seen;
  std::map<SeqRange, std::vector<RankId>> sequences;
  for (const GroupInventory* group : groups) {
    members.insert(members.end(), group->members.begin(), group->members.end());
    seen.insert(seen.end(), group->seen.begin(), group->seen.end());
    for (const auto& [range, ranks] : group->sequences) {
      sequences[range].insert(sequences[range].end(), ranks.begin(), ranks.end());
    }
    if (group == groups.front()) continue;
    for (const auto& [name, count] : group->operations) all.operations[name] = sum(all.operations[name], count);
    for (const auto& [name, count] : group->states) all.states[name] = sum(all.states[name], count);
    all.records += group->records;
  }
  all.members = RankSet(std::move(members));
  all.seen = RankSet(std::move(seen));
  all.sequences.clear();
  for (auto& [range, ranks] : sequences) all.sequences[range] = RankSet(std::move(ranks));
  return all;
}

}  // namespace

std::vector<GroupSet> group_sets(const std::vector<GroupInventory>& groups, std::size_t fewest) {
  std::map<Kind, std::vector<const GroupInventory*>> by_kind;
  for (const GroupInventory& group : groups) by_kind[kind_of(group)].push_back(&group);
  std::vector<GroupSet> sets;
  for (const GroupInventory& group : groups) {
    std::vector<const GroupInventory*>& alike = by_kind[kind_of(group)];
    if (alike.size() < fewest) {
      sets.push_back({{&group}, group});
    } else if (alike.front() == &group) {
      sets.push_back({alike, sum_of(alike)});
    }
  }
  return sets;
}

}  // namespace ddx::cli
