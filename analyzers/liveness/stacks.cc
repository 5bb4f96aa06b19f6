#include "analyzers/liveness/stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include "analyzers/hosts/hosts.h"
#include "analyzers/liveness/liveness.h"
#include "analyzers/log_view.h"
#include "analyzers/match/host_stack.h"
#include "analyzers/snapshot_judge.h"

namespace ddx::analyzers {
namespace {

constexpr std::size_t kMostPlaces = 8;
constexpr std::size_t kMostCited = 8;

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Calls that return only when a message has come.
bool receives(const HostStack& stack) { return one_of(stack.distributed_call, {"recv", "recv_object_list"}); }
bool may_send(const HostStack& stack) {
  return one_of(stack.distributed_call, {"send", "isend", "send_object_list", "batch_isend_irecv"});
}
bool in_p2p(const HostStack& stack) { return receives(stack) || may_send(stack) || stack.distributed_call == "irecv"; }

struct Hosts {
  std::vector<RankStack> stacks;
  RankSet all;        // with a stack
  RankSet in_p2p;     // in a send or a receive
  RankSet receiving;  // and in one that waits, while no other thread sends
  bool timed_out = false;
};

Hosts hosts_of(const Evidence& evidence) {
  Hosts hosts;
  hosts.stacks = last_host_stacks(evidence);
  std::vector<RankId> all, p2p, receiving, sending;
  for (const RankStack& seen : hosts.stacks) {
    all.push_back(seen.rank);
    if (!in_p2p(*seen.stack)) continue;
    p2p.push_back(seen.rank);
    hosts.timed_out = hosts.timed_out || seen.stack->timed_out;
    if (receives(*seen.stack)) receiving.push_back(seen.rank);
  }
  for (const auto& [event, stack] : seen<HostStack>(evidence)) {
    if (event->rank && !stack->main_thread && may_send(*stack)) sending.push_back(*event->rank);
  }
  hosts.all = RankSet(std::move(all));
  hosts.in_p2p = RankSet(std::move(p2p));
  hosts.receiving = RankSet(std::move(receiving)).without(RankSet(std::move(sending)));
  return hosts;
}

// Then the judges of calls say more than stacks can.
bool p2p_is_recorded(const Evidence& evidence) {
  const auto& signatures = evidence.trace.signatures();
  return std::any_of(signatures.begin(), signatures.end(), [](const Signature& signature) {
    return signature.kind == OpKind::send || signature.kind == OpKind::recv;
  });
}

// Who died, a call that somebody never made, a broken link: then messages do not come for another reason.
bool something_else_explains(const Evidence& evidence) {
  for (const auto judge : {judge_snapshot, judge_process_ends, judge_network}) {
    for (const Finding& finding : judge(evidence)) {
      if (finding.severity == Severity::error) return true;
    }
  }
  return false;
}

// All of the job, whose size the evidence states.
bool is_whole_world(const Evidence& evidence, const RankSet& ranks) {
  const auto world = stated_world_size(evidence);
  return world && *world >= 2 && known_ranks(evidence).size() == *world && ranks == known_ranks(evidence);
}

// "ranks 0-3: recv, called at train.py:12 in step", one line a place.
std::string places_text(const Hosts& hosts) {
  std::map<std::string, RankSet> places;
  for (const RankStack& seen : hosts.stacks) places[place_text(*seen.stack)].insert(seen.rank);
  std::vector<std::pair<std::string, RankSet>> ordered(places.begin(), places.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return *a.second.begin() < *b.second.begin(); });
  std::string text;
  for (std::size_t i = 0; i < ordered.size() && i < kMostPlaces; ++i) {
    text += fmt::format("{}: {}\n", ordered[i].second.label(8), ordered[i].first);
  }
  if (ordered.size() > kMostPlaces) {
    const std::size_t more = ordered.size() - kMostPlaces;
    text += fmt::format("and {} more place{}\n", more, more == 1 ? "" : "s");
  }
  return text;
}

// "ranks 0,2 in recv, ranks 1,3 in send"
std::string calls_text(const Hosts& hosts) {
  std::map<std::string, RankSet> calls;
  for (const RankStack& seen : hosts.stacks) {
    if (in_p2p(*seen.stack)) calls[seen.stack->distributed_call].insert(seen.rank);
  }
  if (calls.size() == 1) {
    const bool one = hosts.in_p2p.size() == 1;
    const char* be = hosts.timed_out ? (one ? "was" : "were all") : (one ? "is" : "are all");
    return fmt::format("{} {} in {}", hosts.in_p2p.label(8), be, calls.begin()->first);
  }
  std::vector<std::string> words;
  for (const auto& [call, ranks] : calls) {
    words.push_back(fmt::format("{} {} in {}", ranks.label(8), ranks.size() == 1 ? "is" : "are", call));
  }
  return join_words(words);
}

void cite_stacks(Finding& finding, const Evidence& evidence, const Hosts& hosts) {
  for (const RankStack& seen : hosts.stacks) {
    if (finding.evidence.size() == kMostCited) return;
    if (in_p2p(*seen.stack)) finding.evidence.push_back(stack_evidence(evidence, seen));
  }
}

Finding everybody_receives(const Evidence& evidence, const Hosts& hosts) {
  Finding f;
  f.code = "p2p-cycle";
  // Who timed out waited once, but perhaps not all at one time.
  f.confidence = hosts.timed_out ? Confidence::low : Confidence::medium;
  f.ranks = hosts.receiving;
  f.summary = fmt::format("{}, and nobody sends: every rank of the job waits for a message", calls_text(hosts));
  f.explanation = places_text(hosts) +
                  "Who waits in a receive sends nothing until it returns. Each waits for another of them, so somewhere "
                  "they wait in a circle.\n";
  f.explanation +=
      hosts.timed_out
          ? "These are the calls that timed out; a rank that came to its send too late would leave the same trace.\n"
          : "Only sends that were posted before (isend) and are stuck below would look the same.\n";
  f.advice =
      "Order the calls: even ranks send first, odd ones receive first; or post both together (batch_isend_irecv).";
  cite_stacks(f, evidence, hosts);
  return f;
}

Finding perhaps_a_circle(const Evidence& evidence, const Hosts& hosts) {
  const RankSet known = known_ranks(evidence);
  const RankSet elsewhere = hosts.all.without(hosts.in_p2p);
  const RankSet unseen = known.without(hosts.all);
  const auto& records = evidence.trace.ranks;
  const bool dumps = std::any_of(records.begin(), records.end(), [](const RankRecord& r) { return r.snapshot; });
  Finding f;
  f.code = "inconclusive";
  f.severity = Severity::info;
  f.confidence = Confidence::medium;
  f.victims = hosts.in_p2p;
  f.summary = fmt::format("{}: they may wait for each other in a circle; {}", calls_text(hosts),
                          dumps ? "the recorder holds no sends and receives" : "no recorder dump shows their peers");
  f.explanation = places_text(hosts);
  if (!unseen.empty()) f.explanation += fmt::format("No stack of {}.\n", unseen.label(8));
  f.explanation += "Either these calls wait for each other (a circle, or peers that do not match), or ";
  f.explanation += elsewhere.empty() && unseen.empty()
                       ? std::string("messages are still on their way.\n")
                       : fmt::format("they wait for {}, who {} not come to the matching call.\n",
                                     (elsewhere.empty() ? unseen : elsewhere).label(8),
                                     (elsewhere.empty() ? unseen : elsewhere).size() == 1 ? "has" : "have");
  f.advice =
      "The peers would decide: print rank and peer before each of these calls, or run with "
      "TORCH_DISTRIBUTED_DEBUG=DETAIL. A circle goes away with batch_isend_irecv.";
  cite_stacks(f, evidence, hosts);
  return f;
}

}  // namespace

std::vector<Finding> judge_stacks(const Evidence& evidence) {
  const Hosts hosts = hosts_of(evidence);
  if (hosts.in_p2p.size() < 2 || p2p_is_recorded(evidence)) return {};
  if (is_whole_world(evidence, hosts.receiving) && !something_else_explains(evidence)) {
    return {everybody_receives(evidence, hosts)};
  }
  return {perhaps_a_circle(evidence, hosts)};
}

}  // namespace ddx::analyzers
