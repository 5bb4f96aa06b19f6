#include "analyzers/match/host_stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ddx::analyzers {
namespace {

// "/home/user/train.py:12 in step" -> "train.py:12 in step". A folder may hold " in ", a file name hardly does.
std::string without_folders(const std::string& frame) {
  const std::size_t function = frame.rfind(" in ");
  const std::size_t slash = frame.rfind('/', function);
  return slash == std::string::npos ? frame : frame.substr(slash + 1);
}

bool replaces(const RankStack& later, const RankStack& earlier) {
  return !earlier.stack->timed_out || later.stack->timed_out || !later.stack->distributed_call.empty();
}

}  // namespace

std::vector<RankStack> last_host_stacks(const Evidence& evidence) {
  std::uint32_t last_attempt = 0;
  for (const LogEvent& event : evidence.events) last_attempt = std::max(last_attempt, event.attempt.value_or(0));
  std::map<RankId, RankStack> last;
  for (const LogEvent& event : evidence.events) {
    const auto* stack = std::get_if<HostStack>(&event.fact);
    if (stack == nullptr || !stack->main_thread || !event.rank) continue;
    if (event.attempt && *event.attempt < last_attempt) continue;
    const RankStack found{*event.rank, &event, stack};
    const auto [at, fresh] = last.try_emplace(*event.rank, found);
    if (!fresh && replaces(found, at->second)) at->second = found;
  }
  std::vector<RankStack> stacks;
  for (const auto& [rank, stack] : last) stacks.push_back(stack);
  return stacks;
}

std::string short_call_site(const HostStack& stack) { return without_folders(stack.call_site); }

std::string place_text(const HostStack& stack) {
  std::string site = short_call_site(stack);
  if (!stack.distributed_call.empty()) {
    return site.empty() ? stack.distributed_call : stack.distributed_call + ", called at " + site;
  }
  if (!site.empty()) return site;
  return stack.frames.empty() ? std::string("no Python frame") : without_folders(stack.frames.front());
}

std::string stack_sentence(const RankStack& seen) {
  return fmt::format("The main thread of rank {} {} {}.\n", seen.rank.value,
                     seen.stack->timed_out ? "timed out in" : "is in", place_text(*seen.stack));
}

EvidenceLine stack_evidence(const Evidence& evidence, const RankStack& seen) {
  EvidenceLine line;
  line.path = evidence.path(seen.event->input);
  if (seen.event->line > 0) line.line = seen.event->line;
  line.text = fmt::format("rank {}'s main thread {} {}", seen.rank.value,
                          seen.stack->timed_out ? "timed out in" : "is in", place_text(*seen.stack));
  return line;
}

}  // namespace ddx::analyzers
