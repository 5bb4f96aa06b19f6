#include "analyzers/straggler/straggler.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "analyzers/breakdown/breakdown.h"
#include "analyzers/straggler/durations.h"
#include "analyzers/straggler/lone_ranks.h"
#include "analyzers/straggler/slowness.h"

namespace ddx::analyzers {
namespace {

constexpr double kSureSigmas = 8;

// One rank, by the group that shows it best.
struct Verdict {
  SlowMember slow;
  const Comparison* comparison = nullptr;
  std::size_t compared = 0;
  RankSet waiting;  // of all groups that show it
};
using Verdicts = std::map<RankId, Verdict>;

bool shows_better(const SlowMember& a, const SlowMember& b) {
  return a.always != b.always ? a.always : a.lost > b.lost;
}

RankSet ranks_of(const CallGroup& group) {
  RankSet ranks;
  for (const MemberView* member : group.members) ranks.insert(member->rank);
  return ranks;
}

void add(const Comparison& comparison, Verdicts& verdicts) {
  const Slowness slowness = judge_slowness(comparison);
  // Where many are slow it is how the job is made: unlike parts of a model, not a fault.
  if (slowness.slow.size() * 2 > slowness.compared) return;
  for (const SlowMember& slow : slowness.slow) {
    const auto [at, fresh] = verdicts.try_emplace(slow.member->rank);
    Verdict& verdict = at->second;
    verdict.waiting.insert(ranks_of(*comparison.group));
    if (!fresh && !shows_better(slow, verdict.slow)) continue;
    verdict.slow = slow;
    verdict.comparison = &comparison;
    verdict.compared = slowness.compared;
  }
}

Confidence confidence_of(const Verdict& verdict) {
  const bool sure = verdict.slow.sigmas >= kSureSigmas && verdict.compared > 2 && verdict.slow.stretches >= 16;
  return sure ? Confidence::high : Confidence::medium;
}

std::string percent(double share) { return fmt::format("{:.{}f} %", share * 100, share < 0.1 ? 1 : 0); }

double share_of(Nanos part, Nanos whole) {
  return whole <= 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string in_short(const Verdict& verdict) {
  const SlowMember& slow = verdict.slow;
  if (slow.always) {
    return fmt::format("takes {:.2f}x as long as the others between calls, and they wait {} for it each time",
                       1 + slow.slowdown, format_duration(slow.typical_loss));
  }
  return fmt::format("comes last in {} of the {} calls that somebody is clearly late for, by {} typically",
                     format_count(slow.last), format_count(slow.decided), format_duration(slow.typical_loss));
}

std::string in_full(const Verdict& verdict) {
  const SlowMember& slow = verdict.slow;
  std::string text;
  if (slow.always) {
    text = fmt::format(
        "Between two calls of {} it takes {} of its own where the others take {} (medians over {} calls), and is above "
        "their median in {} of them.\n",
        verdict.comparison->group->label, format_duration(slow.own), format_duration(slow.others),
        format_count(slow.worked), percent(slow.above));
  } else {
    text = fmt::format(
        "In {} the ranks were compared before {} calls. In {} of them somebody was clearly last; in {} "
        "it was this rank.\n",
        verdict.comparison->group->label, format_count(slow.stretches), format_count(slow.decided),
        percent(static_cast<double>(slow.last) / static_cast<double>(slow.decided)));
  }
  text += fmt::format("The others lose {} a call by it, {} in all: {} of the {} that the records span.\n",
                      format_duration(slow.typical_loss), format_duration(slow.lost),
                      percent(share_of(slow.lost, slow.span)), format_duration(slow.span));
  return text;
}

// What the judgement rests on.
std::string basis_of(const Comparison& comparison) {
  if (comparison.by_work) {
    return "Its own time is that of its computations between the two calls in its program: whether a call runs beside "
           "them, and who waits for whom, does not count.\n";
  }
  if (!comparison.by_host) {
    return "What a rank waits for inside of calls is left out: nobody counts as late who only waited for somebody "
           "else.\n";
  }
  std::string text =
      "Only times of issue on the hosts are known. They tell here, since nobody goes on before everybody has come: the "
      "time counts from when the last one had come to the call before.\n";
  if (comparison.group->inferred) {
    text +=
        "The evidence names no communicators. That all ranks share this stream follows from their calls, which "
        "agree in kind and size at every number.\n";
  }
  return text;
}

// "Rank 5 is inside of calls 12 % of its time, the others 41 %": who waits least.
std::string time_in_calls(const std::vector<RankTime>& times, RankId rank, const Verdict& verdict) {
  if (verdict.comparison->by_host) return "";
  std::vector<double> others;
  double own = -1;
  for (const RankTime& time : times) {
    if (!time.rank || !verdict.waiting.contains(*time.rank) || time.end == time.begin) continue;
    const double share = share_of(time.parts.exposed + time.parts.overlapped, time.end - time.begin);
    if (*time.rank == rank) {
      own = share;
    } else {
      others.push_back(share);
    }
  }
  if (own < 0 || others.empty()) return "";
  std::nth_element(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2), others.end());
  return fmt::format("It is inside of calls for {} of its time, the others for {} (median).\n", percent(own),
                     percent(others[others.size() / 2]));
}

void add_evidence(const JobView& job, const Verdict& verdict, Finding& f) {
  const Comparison& comparison = *verdict.comparison;
  for (const std::size_t index : verdict.slow.worst) {
    const Stretch& stretch = comparison.stretches[index];
    Nanos second = 0;
    const OwnTime* own = nullptr;
    for (const OwnTime& time : stretch.times) {
      if (time.member == verdict.slow.member) {
        own = &time;
      } else {
        second = std::max(second, time.own);
      }
    }
    if (own == nullptr) continue;
    EvidenceLine line;
    line.path = job.evidence->path(own->member->record->input);
    line.text = fmt::format("rank {} before {} ({}, seq {}): {} of its own, the others at most {}",
                            own->member->rank.value, describe_call(job, *own->member, own->row),
                            comparison.group->label, stretch.seq, format_duration(own->own), format_duration(second));
    f.evidence.push_back(std::move(line));
  }
}

Finding slow_rank(const JobView& job, const std::vector<RankTime>& times, RankId rank, const Verdict& verdict) {
  Finding f;
  f.code = "slow-rank";
  f.severity = Severity::warning;
  f.confidence = confidence_of(verdict);
  f.ranks.insert(rank);
  f.victims = verdict.waiting.without(f.ranks);
  f.subjects.push_back(verdict.comparison->group->label);
  f.summary = fmt::format("Rank {} is slow: it {}", rank.value, in_short(verdict));
  f.explanation = in_full(verdict) + time_in_calls(times, rank, verdict) + basis_of(*verdict.comparison);
  if (verdict.compared == 2) {
    f.explanation += "Only two ranks compare here: it is slower than the other, which may also be a fast one.\n";
  }
  add_evidence(job, verdict, f);
  f.advice =
      verdict.slow.always
          ? "Compare its GPU with a neighbour's: clocks, power limit and temperature (nvidia-smi -q -d "
            "CLOCK,PERFORMANCE,TEMPERATURE), ECC and Xid lines in the kernel log, what else runs on its host. Then its "
            "data loading, its share of the data, and its network adapter."
          : "See what this rank alone does at those calls: data loading, saving, logging, evaluation, garbage "
            "collection "
            "on its host (py-spy dump --pid); then its GPU's clocks and temperature, ECC lines, and its network "
            "adapter.";
  return f;
}

// Hosts of at least two ranks, by name.
std::map<std::string, RankSet> hosts_of(const JobView& job) {
  std::map<std::string, RankSet> hosts;
  for (const RankView& view : job.ranks) {
    if (!view.record->host.empty()) hosts[view.record->host].insert(view.rank);
  }
  return hosts;
}

Finding slow_node(const JobView& job, const std::string& host, const RankSet& ranks, const Verdicts& verdicts) {
  const auto worst = std::max_element(ranks.begin(), ranks.end(), [&](RankId a, RankId b) {
    return shows_better(verdicts.at(b).slow, verdicts.at(a).slow);
  });
  const Verdict& verdict = verdicts.at(*worst);
  Finding f;
  f.code = "slow-node";
  f.severity = Severity::warning;
  f.confidence = Confidence::high;
  RankSet waiting;
  for (RankId rank : ranks) {
    waiting.insert(verdicts.at(rank).waiting);
    f.confidence = std::min(f.confidence, confidence_of(verdicts.at(rank)));
  }
  f.ranks = ranks;
  f.victims = waiting.without(ranks);
  f.subjects.push_back("host " + host);
  f.summary = fmt::format("Node {} is slow: all of its {} ranks ({}) are, rank {} most: it {}", host, ranks.size(),
                          ranks.text(), worst->value, in_short(verdict));
  f.explanation = fmt::format("Of rank {}: ", worst->value) + in_full(verdict) + basis_of(*verdict.comparison) +
                  "That all ranks of one host are slow, and others are not, points to what they share.\n";
  add_evidence(job, verdict, f);
  f.advice =
      "Look for what the node's ranks share: CPU governor and load, power cap, cooling, PCIe or NVLink width, memory, "
      "its network adapters, a mounted file system. Run the job once without the node and compare.";
  return f;
}

// Slow ranks that are all of a host's become one finding.
std::vector<Finding> tell(const JobView& job, const std::vector<RankTime>& times, Verdicts verdicts) {
  std::vector<Finding> findings;
  const std::map<std::string, RankSet> hosts = hosts_of(job);
  std::vector<std::string> slow_hosts;
  for (const auto& [host, ranks] : hosts) {
    const bool all = ranks.size() > 1 &&
                     std::all_of(ranks.begin(), ranks.end(), [&](RankId rank) { return verdicts.contains(rank); });
    if (all) slow_hosts.push_back(host);
  }
  if (slow_hosts.size() * 2 > hosts.size()) slow_hosts.clear();
  for (const std::string& host : slow_hosts) {
    findings.push_back(slow_node(job, host, hosts.at(host), verdicts));
    for (RankId rank : hosts.at(host)) verdicts.erase(rank);
  }
  if (verdicts.size() > std::max<std::size_t>(1, job.ranks.size() / 4)) return findings;
  for (const auto& [rank, verdict] : verdicts) findings.push_back(slow_rank(job, times, rank, verdict));
  return findings;
}

// Ranks of which no stretch compares with that of another.
RankSet lone_ranks(const JobView& job, const std::vector<Comparison>& comparisons) {
  RankSet compared;
  for (const Comparison& comparison : comparisons) {
    for (const Stretch& stretch : comparison.stretches) {
      for (const OwnTime& time : stretch.times) compared.insert(time.member->rank);
    }
  }
  return job.seen.without(compared);
}

std::vector<Finding> judge_view(const JobView& job) {
  const std::vector<CallGroup> groups = call_groups(job);
  std::vector<Comparison> comparisons;
  for (const CallGroup& group : groups) comparisons.push_back(compare_own_time(job, group));
  Verdicts verdicts;
  std::size_t most = 0;
  for (const Comparison& comparison : comparisons) {
    most = std::max(most, comparison.stretches.size());
    if (comparison.stretches.size() >= kFewestStretches) add(comparison, verdicts);
  }
  const std::vector<RankTime> times = break_down(*job.trace);
  if (!verdicts.empty()) return tell(job, times, std::move(verdicts));
  std::optional<Finding> finding = judge_lone_ranks(job, times, lone_ranks(job, comparisons));
  if (!finding && most < kFewestStretches) finding = judge_durations(job);
  return finding ? std::vector<Finding>{std::move(*finding)} : std::vector<Finding>();
}

bool any_times(const Trace& trace) {
  return std::any_of(trace.programs.begin(), trace.programs.end(), [](const Program& program) {
    return program.size() > 0 && program.loops.empty() && (program.issue(0) || program.start(0) || program.end(0));
  });
}

}  // namespace

std::vector<Finding> judge_stragglers(const Evidence& evidence) {
  std::vector<Finding> findings;
  if (!any_times(evidence.trace)) return findings;
  for (const RecordChoice& choice : record_choices(evidence)) {
    const JobView job = build_job_view(evidence, choice);
    for (Finding& f : judge_view(job)) findings.push_back(std::move(f));
  }
  return findings;
}

}  // namespace ddx::analyzers
