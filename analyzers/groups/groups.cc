#include "analyzers/groups/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ddx::analyzers {
namespace {

struct Claim {
  RankSet members;
  RankSet ranks;  // who says so
};

std::vector<Claim> claims_on(const JobView& job, const std::vector<std::uint32_t>& groups) {
  std::vector<Claim> claims;
  for (std::uint32_t index : groups) {
    Claim claim;
    std::vector<RankId> ranks;
    for (const RankView& view : job.ranks) {
      const bool says_so = std::any_of(view.by_slot.begin(), view.by_slot.end(),
                                       [&](const auto& place) { return place.group == index; });
      if (says_so) ranks.push_back(view.rank);
    }
    claim.members = job.groups[index].ranks();
    claim.ranks = RankSet(std::move(ranks));
    if (!claim.ranks.empty()) claims.push_back(std::move(claim));
  }
  std::sort(claims.begin(), claims.end(), [](const Claim& a, const Claim& b) {
    return a.ranks.size() != b.ranks.size() ? a.ranks.size() > b.ranks.size() : a.ranks.values() < b.ranks.values();
  });
  return claims;
}

bool overlap(const std::vector<Claim>& claims) {
  for (std::size_t i = 0; i < claims.size(); ++i) {
    for (std::size_t j = i + 1; j < claims.size(); ++j) {
      if (!claims[i].members.common(claims[j].members).empty()) return true;
    }
  }
  return false;
}

Finding disagreement(const std::string& name, const std::vector<Claim>& claims) {
  Finding f;
  f.code = "group-disagree";
  const bool majority = claims[0].ranks.size() > claims[1].ranks.size();
  f.confidence = majority ? Confidence::high : Confidence::medium;
  for (std::size_t i = majority ? 1 : 0; i < claims.size(); ++i) f.ranks.insert(claims[i].ranks);
  f.victims = majority ? claims[0].ranks : RankSet();
  f.subjects = {"group " + name};
  f.summary = fmt::format("{} and {} disagree on the members of group {}: {} rank{} against {}",
                          claims[1].ranks.label(8), claims[0].ranks.label(8), name, claims[1].members.size(),
                          claims[1].members.size() == 1 ? "" : "s", claims[0].members.size());
  for (std::size_t i = 0; i < std::min<std::size_t>(claims.size(), 6); ++i) {
    f.explanation += fmt::format("{}: members {}\n", claims[i].ranks.label(8), claims[i].members.text());
  }
  f.explanation += "One name must stand for one list: calls of these ranks never meet.\n";
  f.advice =
      "Compare how each side computes the group (world size, parallel sizes), and create groups in one order "
      "everywhere.";
  return f;
}

}  // namespace

std::vector<GroupDisagreement> find_group_disagreements(const JobView& job) {
  std::map<std::string, std::vector<std::uint32_t>> by_name;
  for (std::uint32_t i = 0; i < job.groups.size(); ++i) {
    if (job.groups[i].members_known && !job.groups[i].synthesized) by_name[job.groups[i].name].push_back(i);
  }
  std::vector<GroupDisagreement> findings;
  for (const auto& [name, groups] : by_name) {
    if (groups.size() < 2) continue;
    const std::vector<Claim> claims = claims_on(job, groups);
    if (claims.size() >= 2 && overlap(claims)) findings.push_back({disagreement(name, claims), groups});
  }
  return findings;
}

}  // namespace ddx::analyzers
