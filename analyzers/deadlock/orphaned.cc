#include "analyzers/deadlock/orphaned.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include "analyzers/deadlock/wait_text.h"

namespace ddx::analyzers {
namespace {

constexpr std::size_t kMostAlone = 3;  // findings of single calls in one group; more are put together
constexpr std::size_t kMostShown = 4;

class OrphanJudge {
 public:
  OrphanJudge(const JobView& job, const WaitGraph& graph, const std::vector<Orphan>& orphans, OrphansTold told)
      : job_(job), graph_(graph), ends_(job, orphans) {
    std::set<Channel> seen;
    for (const Orphan& call : orphans) {
      if ((told == OrphansTold::all || stands(call)) && seen.insert(channel_of(call)).second) {
        standing_.push_back(&call);
      }
    }
  }

  std::vector<Finding> judge() {
    std::set<Channel> told;
    for (const Orphan* call : standing_) {
      if (told.contains(channel_of(*call))) continue;
      const auto wrong = wrong_peer_of(*call);
      const auto elsewhere = wrong ? std::nullopt : in_another_group(*call);
      if (!wrong && !elsewhere) continue;
      findings_.push_back(wrong ? wrong_peer(wrong->first, wrong->second) : two_groups(*call, *elsewhere));
      told.insert(channel_of(wrong ? wrong->first : *call));
      told.insert(channel_of(wrong ? wrong->second : *elsewhere));
    }
    std::erase_if(standing_, [&](const Orphan* call) { return told.contains(channel_of(*call)); });
    tell_alone();
    return std::move(findings_);
  }

 private:
  // Its end of a channel: group, member, partner, whether it sends.
  using Channel = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, bool>;
  static Channel channel_of(const Orphan& call) { return {call.group, call.member, call.partner, call.sends}; }

  const MemberView& member(const Orphan& call) const { return job_.groups[call.group].members[call.member]; }
  RankId rank(const Orphan& call) const { return member(call).rank; }
  RankId partner(const Orphan& call) const { return job_.groups[call.group].members[call.partner].rank; }
  std::string text(const Orphan& call) const { return describe_call(job_, member(call), call.row); }
  // "group pg0, seq 3", in which a call is found again.
  std::string place(const Orphan& call) const {
    const auto seq = member(call).program->seq(call.row);
    const std::string& label = job_.groups[call.group].label;
    return seq ? fmt::format("group {}, seq {}", label, *seq) : "group " + label;
  }

  // Where it is known what has started, what is only enqueued stands behind something else.
  bool stands(const Orphan& call) const {
    const MemberView& own = member(call);
    return own.record->timing.value_or(false) ? own.program->state(call.row) == OpState::started
                                              : own.in_flight(call.row);
  }

  // The call that names a wrong peer, and the one at the peer that was meant, where `call` is one of the two and only
  // one reading of it fits.
  std::optional<std::pair<Orphan, Orphan>> wrong_peer_of(const Orphan& call) const {
    std::optional<std::pair<Orphan, Orphan>> found;
    if (const auto meant = ends_.meant_partner(call)) found = {call, *meant};
    for (const Orphan& other : ends_.of(call.group, call.partner, !call.sends)) {
      const auto meant = ends_.meant_partner(other);
      if (!meant || channel_of(*meant) != channel_of(call)) continue;
      if (found && channel_of(found->first) != channel_of(other)) return std::nullopt;
      if (!found) found = {other, call};
    }
    return found;
  }

  // The other half of the message, posted in another communicator.
  std::optional<Orphan> in_another_group(const Orphan& call) const {
    for (const Orphan& other : ends_.between(partner(call), rank(call), !call.sends)) {
      if (other.group != call.group && ends_.fit(call, other)) return other;
    }
    return std::nullopt;
  }

  RankSet waiting_on(const RankSet& ranks, const RankSet& culprits) const {
    RankSet all = victims_of(graph_, ranks);
    all.insert(ranks);
    return all.without(culprits);
  }

  Finding blank(const Orphan& call) const {
    Finding f;
    f.code = "p2p-unmatched";
    f.subjects = {"group " + job_.groups[call.group].label};
    return f;
  }

  EvidenceLine line(const Orphan& call) const {
    return call_evidence(job_, job_.groups[call.group], member(call), call.row);
  }

  Finding wrong_peer(const Orphan& call, const Orphan& meant) const {
    Finding f = blank(call);
    f.confidence = Confidence::medium;
    f.ranks = RankSet{rank(call)};
    f.victims = waiting_on(stands(meant) ? RankSet{rank(call), rank(meant)} : f.ranks, f.ranks);
    f.summary = call.sends
                    ? fmt::format("rank {} sends to rank {} what rank {} waits to receive from it: {} ({})",
                                  rank(call).value, partner(call).value, rank(meant).value, text(call), place(call))
                    : fmt::format("rank {} waits for rank {} to send what rank {} sends it: {} ({})", rank(call).value,
                                  partner(call).value, rank(meant).value, text(call), place(call));
    f.explanation = fmt::format(
        "The whole programs are known: rank {} never posts a {} that would meet it, and nobody meets {} of rank {}. "
        "One wrong peer explains both.\n",
        partner(call).value, call.sends ? "receive" : "send", text(meant), rank(meant).value);
    f.evidence = {line(call), line(meant)};
    f.advice = fmt::format("Look at how rank {} works out the peer of that call: rank {} would fit.", rank(call).value,
                           rank(meant).value);
    return f;
  }

  Finding two_groups(const Orphan& call, const Orphan& other) const {
    Finding f = blank(call);
    f.subjects.push_back("group " + job_.groups[other.group].label);
    f.confidence = Confidence::high;
    f.ranks = RankSet{rank(call), rank(other)};
    f.victims = victims_of(graph_, f.ranks);
    f.summary = fmt::format("ranks {} and {} post the two halves of a message in two groups: {} ({}), {} ({})",
                            rank(call).value, rank(other).value, text(call), place(call), text(other), place(other));
    f.explanation = "A send meets a receive of its own communicator only; neither of these has a partner there.\n";
    f.evidence = {line(call), line(other)};
    f.advice = "Pass the same group to both calls.";
    return f;
  }

  Finding alone(const Orphan& call) const {
    Finding f = blank(call);
    f.confidence = Confidence::high;
    f.ranks = RankSet{rank(call), partner(call)};
    f.victims = victims_of(graph_, f.ranks);
    const char* wanted = call.sends ? "receive" : "send";
    f.summary = fmt::format("rank {} never posts the {} that meets {} ({}): rank {} {} in it", partner(call).value,
                            wanted, text(call), place(call), rank(call).value, stands(call) ? "waits" : "would wait");
    const bool idle = graph_.waits_in[graph_.index_of(partner(call))].empty();
    f.explanation = fmt::format("The whole program of rank {} is known{}, and it has no {} left for that call.\n",
                                partner(call).value, idle ? " and over" : "", wanted);
    f.evidence = {line(call)};
    f.advice = "Compare the two call sites: either the call is one too many, or its partner was left out.";
    return f;
  }

  Finding together(const std::vector<const Orphan*>& calls) const {
    Finding f = blank(*calls.front());
    f.confidence = Confidence::high;
    for (const Orphan* call : calls) f.ranks.insert(RankSet{rank(*call), partner(*call)});
    f.victims = victims_of(graph_, f.ranks);
    f.summary = fmt::format("{} stand in {} sends and receives that nobody ever meets (group {})", f.ranks.label(8),
                            calls.size(), job_.groups[calls.front()->group].label);
    f.explanation = "The whole programs are known, and no call is left that would meet these.\n";
    for (std::size_t i = 0; i < calls.size() && i < kMostShown; ++i) {
      f.explanation += fmt::format("  rank {}: {}\n", rank(*calls[i]).value, text(*calls[i]));
      f.evidence.push_back(line(*calls[i]));
    }
    f.advice = "Look at how the ranks work out the peers of their sends and receives.";
    return f;
  }

  void tell_alone() {
    for (auto at = standing_.begin(); at != standing_.end();) {
      const auto end =
          std::find_if(at, standing_.end(), [&](const Orphan* call) { return call->group != (*at)->group; });
      if (std::distance(at, end) > static_cast<std::ptrdiff_t>(kMostAlone)) {
        findings_.push_back(together({at, end}));
        at = end;
      }
      for (; at != end; ++at) findings_.push_back(alone(**at));
    }
  }

  const JobView& job_;
  const WaitGraph& graph_;
  OrphanEnds ends_;
  std::vector<const Orphan*> standing_;  // of each channel the first that some rank is in, by group
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> orphan_findings(const JobView& job, const WaitGraph& graph, const std::vector<Orphan>& orphans,
                                     OrphansTold told) {
  return OrphanJudge(job, graph, orphans, told).judge();
}

}  // namespace ddx::analyzers
