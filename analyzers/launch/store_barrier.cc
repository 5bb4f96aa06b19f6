// PyTorch's store barrier counts arrivals under one key and waits until they equal the world size. So its numbers tell:
// too few (somebody is absent), too many with ranks beyond the world (started twice over), too many with ranks inside
// it (an earlier attempt was counted in).
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzers/launch/launch.h"
#include "analyzers/liveness/liveness.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

constexpr std::int64_t kMostWorld = 1'000'000;

struct Reporter {
  const LogEvent* event = nullptr;  // its last line
  const StoreBarrier* last = nullptr;
  std::size_t lines = 0;
  bool timed_out = false;
  bool passed = false;  // it did something later that comes after the barrier
};

struct Barrier {
  std::string key;
  std::uint32_t attempt = 0;
  std::map<RankId, Reporter> reporters;
  std::map<RankId, const LogEvent*> joins;
  std::int64_t world = 0;
  std::int64_t count = 0;  // the highest that anybody saw

  RankSet reporting() const {
    std::vector<RankId> ranks;
    for (const auto& [rank, reporter] : reporters) ranks.push_back(rank);
    return RankSet(std::move(ranks));
  }
  RankSet arrived() const {
    std::vector<RankId> ranks;
    for (const auto& [rank, event] : joins) ranks.push_back(rank);
    RankSet all(std::move(ranks));
    all.insert(reporting());
    return all;
  }
  bool timed_out() const {
    return std::any_of(reporters.begin(), reporters.end(), [](const auto& r) { return r.second.timed_out; });
  }
  bool waits_on() const {
    return std::any_of(reporters.begin(), reporters.end(), [](const auto& r) { return r.second.lines > 1; });
  }
};

bool comes_after_init(const LogFact& fact) {
  return std::holds_alternative<ProgressNotice>(fact) || std::holds_alternative<CommInit>(fact) ||
         std::holds_alternative<WatchdogTimeout>(fact) || std::holds_alternative<WatchdogStatus>(fact) ||
         std::holds_alternative<NetChannel>(fact) || std::holds_alternative<WrapperMismatch>(fact);
}

// "store_based_barrier_key:2" -> 2: the second process group that this job makes.
std::int64_t key_index(const std::string& key) {
  const auto colon = key.rfind(':');
  if (colon == std::string::npos) return 0;
  std::int64_t index = 0;
  for (std::size_t i = colon + 1; i < key.size(); ++i) {
    if (key[i] < '0' || key[i] > '9' || index > kMostWorld) return 0;
    index = index * 10 + (key[i] - '0');
  }
  return index;
}

std::vector<Barrier> barriers_of(const Evidence& evidence) {
  const std::vector<std::uint32_t> attempts = attempts_of(evidence);
  std::map<std::pair<std::uint32_t, std::string>, Barrier> found;
  for (std::size_t i = 0; i < evidence.events.size(); ++i) {
    const LogEvent& event = evidence.events[i];
    if (const auto* line = std::get_if<StoreBarrier>(&event.fact)) {
      Barrier& barrier = found[{attempts[i], line->key}];
      Reporter& reporter = barrier.reporters[line->rank];
      reporter.event = &event;
      reporter.last = line;
      ++reporter.lines;
      reporter.timed_out = reporter.timed_out || line->timed_out;
      barrier.count = std::max(barrier.count, line->worker_count);
    } else if (const auto* join = std::get_if<StoreJoin>(&event.fact)) {
      found[{attempts[i], join->key}].joins.emplace(join->rank, &event);
    }
  }
  std::vector<Barrier> barriers;
  for (auto& [key, barrier] : found) {
    if (barrier.reporters.empty()) continue;
    barrier.attempt = key.first;
    barrier.key = key.second;
    barrier.world = barrier.reporters.begin()->second.last->world_size;
    barriers.push_back(std::move(barrier));
  }
  return barriers;
}

// A rank passed when it wrote a later line that needs the barrier behind it, or waits at the barrier of a later key.
// Where one of its members gave up, nobody passed: a line of work then is of something that needs no group.
void find_passed(const Evidence& evidence, Barrier& barrier) {
  if (barrier.timed_out()) return;
  std::map<std::pair<InputId, RankId>, std::uint64_t> latest;
  std::map<InputId, std::uint64_t> latest_nameless;  // lines without a rank speak for a file of one reporter
  for (const LogEvent& event : evidence.events) {
    const auto* other = std::get_if<StoreBarrier>(&event.fact);
    const bool later_key = other != nullptr && key_index(other->key) > key_index(barrier.key);
    if (!later_key && !comes_after_init(event.fact)) continue;
    const std::optional<RankId> rank = other != nullptr ? std::optional(other->rank) : event.rank;
    std::uint64_t& line = rank ? latest[{event.input, *rank}] : latest_nameless[event.input];
    line = std::max(line, event.line);
  }
  std::map<InputId, std::size_t> in_file;
  for (const auto& [rank, reporter] : barrier.reporters) ++in_file[reporter.event->input];
  for (auto& [rank, reporter] : barrier.reporters) {
    const auto own = latest.find({reporter.event->input, rank});
    const auto nameless = latest_nameless.find(reporter.event->input);
    const bool by_own = own != latest.end() && own->second > reporter.event->line;
    const bool by_file = nameless != latest_nameless.end() && nameless->second > reporter.event->line &&
                         in_file[reporter.event->input] == 1;
    reporter.passed = !reporter.timed_out && (by_own || by_file);
  }
}

Finding start(const Evidence& evidence, const Barrier& barrier, const char* code, Confidence confidence) {
  Finding finding;
  finding.code = code;
  finding.confidence = confidence;
  finding.subjects.push_back("store key " + barrier.key);
  if (barrier.attempt > 0) finding.subjects.push_back(fmt::format("attempt {}", barrier.attempt));
  for (const auto& [rank, reporter] : barrier.reporters) cite(finding, evidence, *reporter.event);
  return finding;
}

std::optional<Finding> sizes_differ(const Evidence& evidence, const Barrier& barrier) {
  std::map<std::int64_t, std::vector<RankId>> sizes;
  for (const auto& [rank, reporter] : barrier.reporters) sizes[reporter.last->world_size].push_back(rank);
  if (sizes.size() < 2) return std::nullopt;
  Finding finding = start(evidence, barrier, "world-size-disagree", Confidence::high);
  std::vector<std::string> parts;
  for (const auto& [size, ranks] : sizes) {
    parts.push_back(fmt::format("{} by {}", size, RankSet(ranks).label(6)));
  }
  finding.ranks = minority(sizes);
  finding.victims = barrier.reporting().without(finding.ranks);
  finding.summary = "The processes do not agree on the world size: " + join_words(parts);
  finding.explanation =
      "Each waits for as many arrivals as it believes the job has, so the numbers never fit for all.\n";
  finding.advice = "Set one WORLD_SIZE (or --nnodes x --nproc-per-node) for all processes.";
  return finding;
}

// Ranks that cannot exist in this world.
RankSet outside(const Barrier& barrier) {
  std::vector<RankId> ranks;
  for (RankId rank : barrier.arrived()) {
    if (rank.value < 0 || rank.value >= barrier.world) ranks.push_back(rank);
  }
  return RankSet(std::move(ranks));
}

Finding started_twice_over(const Evidence& evidence, const Barrier& barrier, const RankSet& beyond) {
  const bool multiple = barrier.count % barrier.world == 0;
  Finding finding = start(evidence, barrier, "launch-double", multiple ? Confidence::high : Confidence::medium);
  finding.victims = barrier.reporting();
  for (const auto& [rank, reporter] : barrier.reporters) {
    if (finding.subjects.size() > 4) break;
    finding.subjects.push_back(fmt::format("line {}:{}", file_name(evidence, *reporter.event), reporter.event->line));
  }
  finding.summary =
      fmt::format("The job is started twice over: {} processes joined a world of {}, and {} {}", barrier.count,
                  barrier.world, beyond.size() == 1 ? "one calls itself" : "some call themselves", beyond.label(4));
  finding.explanation = fmt::format(
      "A world of {} has ranks 0-{}; {} cannot be in it. {} arrivals{}: two mechanisms multiply, such as srun starting "
      "several tasks of which each spawns workers of its own, while the world size was taken from one of the two.\n",
      barrier.world, barrier.world - 1, beyond.label(), barrier.count,
      multiple ? fmt::format(" are {} times {}", barrier.count / barrier.world, barrier.world) : "");
  finding.explanation += "Keys left by an earlier attempt would not bring ranks beyond the world.\n";
  finding.advice =
      "Start either one task per node that spawns its workers, or one task per GPU that spawns none. Waiting "
      "longer does not help.";
  return finding;
}

Finding out_of_range(const Evidence& evidence, const Barrier& barrier, const RankSet& beyond) {
  Finding finding = start(evidence, barrier, "rank-range", Confidence::high);
  finding.ranks = beyond;
  finding.victims = barrier.reporting().without(beyond);
  finding.summary =
      fmt::format("{} cannot be in a world of {} (ranks 0-{})", beyond.label(4), barrier.world, barrier.world - 1);
  const RankSet arrived = barrier.arrived();
  const bool off_by_one = beyond.size() == 1 && beyond.contains(RankId(barrier.world)) && !arrived.contains(RankId(0));
  finding.explanation = off_by_one ? "Ranks seem to be counted from 1: rank 0, which serves the store, was not seen.\n"
                                   : "Ranks are counted from 0 to the world size less one.\n";
  finding.advice =
      off_by_one ? "Subtract 1 from every rank." : "Look at how RANK is computed from node and local rank.";
  return finding;
}

Finding counted_before(const Evidence& evidence, const Barrier& barrier) {
  const std::int64_t times = barrier.count / barrier.world;
  Finding finding = start(evidence, barrier, "stale-store", Confidence::medium);
  finding.victims = barrier.reporting();
  finding.summary =
      fmt::format("The store counts {} arrivals for a world of {}: {} attempts were counted under one key",
                  barrier.count, barrier.world, times);
  finding.explanation = fmt::format(
      "{} is {} times the world size and no rank lies beyond it ({} {}), so nothing was started twice over: each "
      "restart added its {} arrivals to the same counter, and the count can never equal the world size again.\n",
      barrier.count, times, barrier.reporting().label(4), barrier.reporting().size() == 1 ? "reports" : "report",
      barrier.world);
  finding.explanation += fmt::format(
      "The cause to look for is the failure that ended attempt 0, before these lines; the "
      "numbers fit {} restart{}.\n",
      times - 1, times == 2 ? "" : "s");
  std::size_t told = 0;
  for (const auto& [event, fact] : seen<AttemptStart>(evidence)) {
    if (++told <= 3) cite(finding, evidence, *event);
  }
  finding.advice =
      "Find the first failure in the earlier output. Use a fresh store (new port, file or rendezvous id) for each "
      "attempt, or a PyTorch that keys the barrier by attempt.";
  return finding;
}

Finding joined_again(const Evidence& evidence, const Barrier& barrier) {
  const std::int64_t extra = (barrier.count - barrier.world) % barrier.world;
  const RankSet reporting = barrier.reporting();
  const bool named = static_cast<std::int64_t>(reporting.size()) == extra;
  Finding finding = start(evidence, barrier, "partial-restart", named ? Confidence::medium : Confidence::low);
  if (named) {
    finding.ranks = reporting;
    finding.victims = known_ranks(evidence).without(reporting);
  }
  finding.summary = named ? fmt::format("{} joined again: {} arrivals in a world of {}, the others began long before",
                                        reporting.label(4), barrier.count, barrier.world)
                          : fmt::format("{} arrivals in a world of {}: part of the job was started again",
                                        barrier.count, barrier.world);
  finding.explanation = fmt::format(
      "The first {} arrivals were the whole world; what came later is a second incarnation of ranks that were there "
      "before. "
      "It waits at a start-up that the others left, and they wait in operations for the process it replaced.\n",
      barrier.world);
  if (!named) finding.explanation += "Which ranks came again these lines do not settle.\n";
  finding.advice =
      "Restart all ranks together, or use an elastic launcher that does; a single process cannot come back.";
  return finding;
}

void place_absent(const Barrier& barrier, const RankSet& candidates, bool named, Finding& finding) {
  const std::int64_t lacking = barrier.world - barrier.count;
  const RankSet arrived = barrier.arrived();
  if (named) {
    finding.ranks = candidates;
    finding.explanation += fmt::format("{} of {} arrived; {} {} here, so the absent {} {}.\n",
                                       barrier.world - static_cast<std::int64_t>(candidates.size()), barrier.world,
                                       arrived.label(), arrived.size() == 1 ? "reports" : "report",
                                       candidates.size() == 1 ? "one is" : "ones are", candidates.label());
  } else {
    finding.explanation += fmt::format(
        "{} of {} arrived, but only {} {} here: {} of {} {} absent, and these lines do not say "
        "which.\n",
        barrier.count, barrier.world, arrived.label(), arrived.size() == 1 ? "reports" : "report", lacking,
        candidates.label(), lacking == 1 ? "is" : "are");
  }
  finding.victims = arrived;
}

std::optional<Finding> too_few(const Evidence& evidence, const Barrier& barrier, const RankSet& dead) {
  const bool any_passed = std::any_of(barrier.reporters.begin(), barrier.reporters.end(),
                                      [](const auto& entry) { return entry.second.passed; });
  if (any_passed || barrier.world > kMostWorld) return std::nullopt;
  const RankSet all = RankSet::range(RankId(0), RankId(barrier.world - 1));
  RankSet candidates = all.without(barrier.arrived());
  // Who has lines of its own here was started, at least; where just as many are not heard of at all, they are meant.
  const RankSet unheard = candidates.without(spoken_ranks(evidence));
  const bool by_silence = !unheard.empty() && unheard.size() < candidates.size() &&
                          static_cast<std::int64_t>(unheard.size()) == barrier.world - barrier.count;
  if (by_silence) candidates = unheard;
  // Lines of early arrivals show small counts: all came, unless the barrier timed out.
  if (candidates.empty()) return std::nullopt;
  const auto lacking = static_cast<std::size_t>(barrier.world - barrier.count);
  const bool named = candidates.size() <= lacking;
  if (named && candidates.without(dead).empty()) return std::nullopt;
  if (named) candidates = candidates.without(dead);
  const bool sure = named && !by_silence && candidates.size() == lacking && (barrier.timed_out() || barrier.waits_on());
  const bool later_group = key_index(barrier.key) > 1;
  Finding finding = start(evidence, barrier, later_group ? "group-create" : "rank-missing",
                          sure && !later_group ? Confidence::high
                          : sure               ? Confidence::medium
                                               : Confidence::low);
  place_absent(barrier, candidates, named, finding);
  const std::string who = named ? candidates.label(4) : fmt::format("{} of {}", lacking, candidates.label(4));
  const bool one = (named ? candidates.size() : lacking) == 1;
  if (later_group) {
    finding.summary =
        fmt::format("{} did not join in making process group number {}; {} {} for it", who, key_index(barrier.key),
                    finding.victims.label(4), finding.victims.size() == 1 ? "waits" : "wait");
    finding.explanation +=
        "The first group was made, so these processes exist: they did not call new_group this time.\n";
    finding.advice = "new_group must be called by all ranks of the world, in the same order, members or not.";
    return finding;
  }
  finding.summary = fmt::format("{} never arrived at the start; {} {} for {}", who, finding.victims.label(4),
                                finding.victims.size() == 1 ? "waits" : "wait", one ? "it" : "them");
  finding.explanation +=
      "Why is not in these lines: the process may not have been started, may have ended before, or may not "
      "reach the store.\n";
  finding.advice =
      fmt::format("Look whether the process{} of {} exist{}, and at its log.", one ? "" : "es", who, one ? "s" : "");
  return finding;
}

std::optional<Finding> judge_barrier(const Evidence& evidence, const Barrier& barrier, const RankSet& dead) {
  if (auto finding = sizes_differ(evidence, barrier)) return finding;
  if (barrier.world <= 0) return std::nullopt;
  const RankSet beyond = outside(barrier);
  if (!beyond.empty()) {
    const bool above = beyond.values().back().value >= barrier.world;
    return barrier.count > barrier.world && above ? started_twice_over(evidence, barrier, beyond)
                                                  : out_of_range(evidence, barrier, beyond);
  }
  if (barrier.count > barrier.world) {
    return barrier.count % barrier.world == 0 ? counted_before(evidence, barrier) : joined_again(evidence, barrier);
  }
  if (barrier.count < barrier.world) return too_few(evidence, barrier, dead);
  return std::nullopt;
}

}  // namespace

std::vector<Finding> judge_store_barrier(const Evidence& evidence) {
  std::vector<Barrier> barriers = barriers_of(evidence);
  if (barriers.empty()) return {};
  RankSet dead;
  for (const Finding& finding : judge_process_ends(evidence)) {
    if (finding.code == "dead-rank") dead.insert(finding.ranks);
  }
  std::vector<Finding> findings;
  for (Barrier& barrier : barriers) {
    find_passed(evidence, barrier);
    auto finding = judge_barrier(evidence, barrier, dead);
    // The same fault at the next key or attempt is told once.
    const auto told = [&finding](const Finding& other) {
      return other.code == finding->code && other.ranks == finding->ranks;
    };
    if (finding && std::none_of(findings.begin(), findings.end(), told)) findings.push_back(std::move(*finding));
  }
  return findings;
}

}  // namespace ddx::analyzers
