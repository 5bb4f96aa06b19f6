// Time-outs of one communicator that are not the same on its members.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "analyzers/groups/groups.h"
#include "analyzers/log_view.h"
#include "base/units.h"

namespace ddx::analyzers {
namespace {

using Classes = std::map<Nanos, std::vector<RankId>>;

const Call* last_issued(const MemberView& member) {
  return member.issued == 0 ? nullptr : &member.calls[member.issued - 1];
}

// Members by the limit of one and the same call: the first of which all that are compared tell their latest limit. Who
// is not there yet may still have the limit of before.
Classes classes_of(const GroupView& group) {
  std::uint64_t seq = 0;
  for (const MemberView& member : group.members) {
    if (member.limit) seq = std::max<std::uint64_t>(seq, member.limit->since);
  }
  Classes classes;
  for (const MemberView& member : group.members) {
    const Call* last = last_issued(member);
    if (member.limit && last && last->seq >= seq) classes[member.limit->timeout].push_back(member.rank);
  }
  return classes;
}

std::string describe(const Classes& classes) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> parts;
  for (const auto& [timeout, ranks] : classes) {
    if (parts.size() == kMost) {
      parts.push_back(fmt::format("{} more", classes.size() - kMost));
      break;
    }
    parts.push_back(fmt::format("{} on {}", format_duration(timeout), RankSet(ranks).label(8)));
  }
  return join_words(parts);
}

Finding limit_finding(const JobView& job, const GroupView& group, const Classes& classes) {
  Finding f;
  f.code = "timeout-short";
  f.severity = Severity::warning;
  f.confidence = Confidence::high;
  f.ranks = minority(classes);
  f.subjects = {"group " + group.label};
  f.summary = fmt::format("the time-out of group {} is not the same on all ranks: {}", group.label, describe(classes));
  f.explanation =
      "By the recorders, for calls with the same sequence number. Whoever has the shortest limit gives up first and "
      "takes the job down, however long the others would have waited.\n";
  f.advice = "Pass the same timeout to init_process_group and new_group on all ranks.";
  for (const auto& [timeout, ranks] : classes) {
    if (f.evidence.size() == 2) break;
    const MemberView& member = *group.member_of(ranks.front());
    f.evidence.push_back(call_evidence(job, group, member, last_issued(member)->row));
  }
  return f;
}

}  // namespace

std::vector<Finding> find_unlike_limits(const JobView& job) {
  // One wrong setting shows in every group that the rank makes with it.
  std::map<std::string, std::size_t> told;
  std::vector<Finding> findings;
  for (const GroupView& group : job.groups) {
    const Classes classes = classes_of(group);
    if (classes.size() < 2) continue;
    Finding finding = limit_finding(job, group, classes);
    const auto [at, fresh] = told.try_emplace(finding.ranks.text(), findings.size());
    if (fresh) {
      findings.push_back(std::move(finding));
    } else {
      findings[at->second].subjects.push_back(finding.subjects.front());
    }
  }
  return findings;
}

}  // namespace ddx::analyzers
