// Checks that need no second opinion: sizes that cannot be right, and split lists that do not fit each other.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzers/mismatch/divergence.h"

namespace ddx::analyzers {
namespace {

std::uint64_t numel(const std::vector<std::int64_t>& shape) {
  std::uint64_t product = 1;
  for (std::int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(product, static_cast<std::uint64_t>(extent), &product)) return UINT64_MAX;
  }
  return product;
}

// One tensor against the whole of the group, or a list with a part for each member (which may be uneven by right).
bool parts_fit(std::uint64_t part, std::uint64_t whole, const std::vector<std::vector<std::int64_t>>& whole_shapes,
               std::size_t members, std::uint32_t position) {
  if (whole_shapes.size() == members && members > 1) {
    return position >= members || numel(whole_shapes[position]) == part;
  }
  std::uint64_t product = 0;
  return !__builtin_mul_overflow(part, static_cast<std::uint64_t>(members), &product) && product == whole;
}

bool size_possible(const Signature& s, std::size_t members, std::uint32_t position) {
  if (!s.count_in || !s.count_out) return true;
  const bool many_in = s.shape_in.size() > 1, many_out = s.shape_out.size() > 1;
  if (s.kind == OpKind::all_gather && !many_in) {
    return parts_fit(*s.count_in, *s.count_out, s.shape_out, members, position);
  }
  if (s.kind == OpKind::reduce_scatter && !many_out) {
    return parts_fit(*s.count_out, *s.count_in, s.shape_in, members, position);
  }
  return true;
}

struct BadSize {
  const MemberView* member = nullptr;  // the first one seen
  const Call* call = nullptr;
  std::vector<RankId> ranks;
};

Finding bad_size_finding(const JobView& job, const GroupView& group, const BadSize& bad) {
  const Signature& s = job.trace->signature(bad.member->program->signature(bad.call->row));
  const bool gather = s.kind == OpKind::all_gather;
  Finding f;
  f.code = "mismatch-size";
  f.confidence = group.members_known ? Confidence::high : Confidence::medium;
  f.ranks = RankSet(bad.ranks);
  f.subjects = {"group " + group.label, fmt::format("seq {}", bad.call->seq)};
  f.summary = fmt::format("{}: {} cannot be right: {} members, {} in, {} out (group {}, seq {})", f.ranks.label(8),
                          name_of(s.kind), group.members.size(), format_count(*s.count_in), format_count(*s.count_out),
                          group.label, bad.call->seq);
  f.explanation =
      fmt::format("The {} must be {} x the {} ({} x {}).\n", gather ? "output" : "input", group.members.size(),
                  gather ? "input" : "output", group.members.size(), format_count(gather ? *s.count_in : *s.count_out));
  f.evidence.push_back(call_evidence(job, group, *bad.member, bad.call->row));
  f.advice = "Allocate the buffers from the group's size: a tensor for another world size is passed here.";
  return f;
}

void check_group_sizes(const JobView& job, const GroupView& group, std::vector<Finding>& findings) {
  if (!group.members_known) return;
  std::map<std::uint32_t, BadSize> by_seq;
  std::map<std::pair<std::uint32_t, std::uint32_t>, bool> checked;  // (signature, position): possible
  for (const MemberView& member : group.members) {
    for (const Call& call : member.calls) {
      if (call.rows != 1) continue;
      const SignatureId id = member.program->signature(call.row);
      const Signature& s = job.trace->signature(id);
      if (s.kind != OpKind::all_gather && s.kind != OpKind::reduce_scatter) continue;
      const auto [at, fresh] = checked.try_emplace({id.value, member.position}, true);
      if (fresh) at->second = size_possible(s, group.members.size(), member.position);
      if (at->second) continue;
      BadSize& bad = by_seq[call.seq];
      if (!bad.member) bad.member = &member, bad.call = &call;
      bad.ranks.push_back(member.rank);
    }
  }
  if (!by_seq.empty()) findings.push_back(bad_size_finding(job, group, by_seq.begin()->second));
}

// One pair of members whose lists do not fit.
struct BadPair {
  const MemberView* sender;
  const MemberView* receiver;
  std::uint64_t sent;
  std::uint64_t expected;
};

std::vector<BadPair> bad_pairs(const JobView& job, const GroupView& group, std::uint32_t seq) {
  struct Lists {
    const MemberView* member;
    const Signature* signature;
  };
  std::vector<Lists> by_position(group.members.size(), {nullptr, nullptr});
  for (const MemberView& member : group.members) {
    const Call* call = member.call_at(seq);
    if (!call || member.position >= by_position.size()) continue;
    const Signature& s = job.trace->signature(member.program->signature(call->row));
    if (s.kind == OpKind::all_to_all) by_position[member.position] = {&member, &s};
  }
  std::vector<BadPair> bad;
  for (std::size_t i = 0; i < by_position.size(); ++i) {
    for (std::size_t j = 0; j < by_position.size(); ++j) {
      const auto& from = by_position[i];
      const auto& to = by_position[j];
      if (!from.signature || !to.signature) continue;
      if (j >= from.signature->split_in.size() || i >= to.signature->split_out.size()) continue;
      const std::uint64_t sent = from.signature->split_in[j], expected = to.signature->split_out[i];
      if (sent != expected) bad.push_back({from.member, to.member, sent, expected});
    }
  }
  return bad;
}

Finding split_finding(const JobView& job, const GroupView& group, std::uint32_t seq, const std::vector<BadPair>& bad) {
  Finding f;
  f.code = "a2a-split";
  f.confidence = Confidence::high;
  std::string pairs;
  for (const BadPair& pair : bad) {
    f.ranks.insert(pair.sender->rank);
    f.ranks.insert(pair.receiver->rank);
    if (f.subjects.size() < 8)
      f.subjects.push_back(fmt::format("pair {}->{}", pair.sender->rank.value, pair.receiver->rank.value));
    if (pairs.size() < 600) {
      pairs += fmt::format("{}->{}: sends {}, expected {}. ", pair.sender->rank.value, pair.receiver->rank.value,
                           format_count(pair.sent), format_count(pair.expected));
    }
  }
  f.subjects.push_back("group " + group.label);
  f.subjects.push_back(fmt::format("seq {}", seq));
  const BadPair& first = bad.front();
  f.summary =
      fmt::format("all_to_all split lists do not fit: rank {} sends {} to rank {}, which expects {} (group {}, seq {})",
                  first.sender->rank.value, format_count(first.sent), first.receiver->rank.value,
                  format_count(first.expected), group.label, seq);
  f.explanation = pairs + "\nTotals may agree all the same: only the pairs show it.\n";
  f.evidence.push_back(call_evidence(job, group, *first.sender, first.sender->call_at(seq)->row));
  f.evidence.push_back(call_evidence(job, group, *first.receiver, first.receiver->call_at(seq)->row));
  f.advice =
      "Exchange the split sizes first (all_to_all of one count a peer) and build both lists from that; look for a "
      "reversed or permuted list.";
  return f;
}

}  // namespace

std::vector<Finding> find_impossible_sizes(const JobView& job) {
  std::vector<Finding> findings;
  for (const GroupView& group : job.groups) check_group_sizes(job, group, findings);
  if (findings.size() < 2) return findings;
  // One wrong computation shows in every group alike.
  Finding one = std::move(findings.front());
  for (std::size_t i = 1; i < findings.size(); ++i) one.ranks.insert(findings[i].ranks);
  one.explanation += fmt::format("The same holds in {} groups; {} {} such calls.\n", findings.size(),
                                 one.ranks.label(8), one.ranks.size() == 1 ? "makes" : "make");
  findings.clear();
  findings.push_back(std::move(one));
  return findings;
}

std::vector<Finding> find_split_mismatches(const JobView& job) {
  std::vector<Finding> findings;
  for (const GroupView& group : job.groups) {
    std::map<std::uint32_t, bool> seqs;
    for (const MemberView& member : group.members) {
      for (const Call& call : member.calls) {
        const Signature& s = job.trace->signature(member.program->signature(call.row));
        if (!s.split_in.empty() || !s.split_out.empty()) seqs[call.seq] = true;
      }
    }
    for (const auto& [seq, unused] : seqs) {
      const auto bad = bad_pairs(job, group, seq);
      if (bad.empty()) continue;
      findings.push_back(split_finding(job, group, seq, bad));
      break;  // the first one a group: what follows may be its consequence
    }
  }
  return findings;
}

}  // namespace ddx::analyzers
