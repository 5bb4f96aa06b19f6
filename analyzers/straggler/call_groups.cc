#include "analyzers/straggler/call_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ddx::analyzers {
namespace {

constexpr std::size_t kFewest = 16;
constexpr std::size_t kMostTimes = 2'000'000;

const Signature& signature_of(const JobView& job, const MemberView& member, const Call& call) {
  return job.trace->signature(member.program->signature(call.row));
}

// Same kind and size at every number that both have, and enough such numbers.
bool agree(const JobView& job, const MemberView& a, const MemberView& b) {
  std::size_t shared = 0;
  auto x = a.calls.begin();
  auto y = b.calls.begin();
  while (x != a.calls.end() && y != b.calls.end()) {
    if (x->seq != y->seq) {
      (x->seq < y->seq ? x : y)++;
      continue;
    }
    const Signature& left = signature_of(job, a, *x++);
    const Signature& right = signature_of(job, b, *y++);
    if (left.kind != right.kind || left.count_in != right.count_in) return false;
    ++shared;
  }
  return shared >= kFewest;
}

// By rank: its streams that stand for a communicator of unknown members.
std::map<RankId, std::vector<const MemberView*>> lone_streams(const JobView& job) {
  std::map<RankId, std::vector<const MemberView*>> streams;
  for (const GroupView& group : job.groups) {
    if (!group.synthesized || group.members_known || group.members.size() != 1) continue;
    const MemberView& member = group.members.front();
    if (member.record != nullptr && member.calls.size() >= kFewest) streams[member.rank].push_back(&member);
  }
  return streams;
}

// The group of all ranks around one stream of the first; nullopt where some rank has none, or two that fit.
std::optional<CallGroup> shared_stream(const JobView& job, const MemberView& first,
                                       const std::map<RankId, std::vector<const MemberView*>>& streams) {
  CallGroup group;
  group.inferred = true;
  for (const auto& [rank, candidates] : streams) {
    if (rank == first.rank) {
      group.members.push_back(&first);
      continue;
    }
    const MemberView* match = nullptr;
    for (const MemberView* candidate : candidates) {
      if (!agree(job, first, *candidate)) continue;
      if (match != nullptr) return std::nullopt;
      match = candidate;
    }
    if (match == nullptr) return std::nullopt;
    group.members.push_back(match);
  }
  if (group.members.size() < 2 || !hosts_wait(job, group)) return std::nullopt;
  group.label = fmt::format("the stream that all {} ranks share", group.members.size());
  return group;
}

// When each member made a call, and made its next one.
struct Passage {
  std::vector<Nanos> come, go;
};

std::vector<Passage> passages(const JobView& job, const CallGroup& group) {
  std::vector<Passage> all;
  // Of very large groups the latest calls are enough.
  const std::vector<Call>& calls = group.members.front()->calls;
  const std::size_t most = std::max<std::size_t>(64, kMostTimes / group.members.size());
  for (std::size_t i = calls.size() - std::min(calls.size(), most); i < calls.size(); ++i) {
    const Call& call = calls[i];
    if (!synchronizes(signature_of(job, *group.members.front(), call).kind)) continue;
    Passage passage;
    for (const MemberView* member : group.members) {
      const Call* here = member->call_at(call.seq);
      if (here == nullptr || here + 1 == member->calls.data() + member->calls.size() || here[1].seq != call.seq + 1)
        break;
      const auto come = plausible(member->program->issue(here->row));
      const auto go = plausible(member->program->issue(here[1].row));
      if (!come || !go) break;
      passage.come.push_back(*come);
      passage.go.push_back(*go);
    }
    if (passage.go.size() == group.members.size()) all.push_back(std::move(passage));
  }
  return all;
}

// The least value but for one in fifty: strays happen.
Nanos nearly_least(std::vector<Nanos>& values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 50);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// How far the clock of member `index` is ahead of that of the first.
Nanos offset_of(const std::vector<Passage>& all, std::size_t index) {
  std::vector<Nanos> most, least;
  for (const Passage& passage : all) {
    most.push_back(passage.go[index] - passage.come[0]);
    least.push_back(passage.go[0] - passage.come[index]);
  }
  const Nanos high = nearly_least(most), low = -nearly_least(least);
  if (low <= 0 && 0 <= high) return 0;
  return low + (high - low) / 2;
}

bool waited(const Passage& passage, const std::vector<Nanos>& offsets) {
  Nanos last = INT64_MIN, first_on = INT64_MAX;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    last = std::max(last, passage.come[i] - offsets[i]);
    first_on = std::min(first_on, passage.go[i] - offsets[i]);
  }
  return first_on >= last;
}

}  // namespace

std::vector<CallGroup> call_groups(const JobView& job) {
  std::vector<CallGroup> groups;
  for (const GroupView& group : job.groups) {
    CallGroup calls;
    calls.label = "group " + group.label;
    for (const MemberView& member : group.members) {
      if (member.record != nullptr && member.calls.size() > 1) calls.members.push_back(&member);
    }
    if (calls.members.size() > 1) groups.push_back(std::move(calls));
  }
  const auto streams = lone_streams(job);
  if (streams.size() < 2) return groups;
  for (const MemberView* first : streams.begin()->second) {
    if (auto group = shared_stream(job, *first, streams)) groups.push_back(std::move(*group));
  }
  return groups;
}

std::optional<std::vector<Nanos>> hosts_wait(const JobView& job, const CallGroup& group) {
  const std::vector<Passage> all = passages(job, group);
  if (all.size() < kFewest) return std::nullopt;
  std::vector<Nanos> offsets(group.members.size(), 0);
  for (std::size_t i = 1; i < offsets.size(); ++i) offsets[i] = offset_of(all, i);
  const auto orderly = static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [&](const Passage& passage) { return waited(passage, offsets); }));
  if (orderly * 20 < all.size() * 19) return std::nullopt;
  return offsets;
}

}  // namespace ddx::analyzers
