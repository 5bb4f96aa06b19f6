// LogView: how the judges of log events look at them: the events of one kind, who wrote a line, how to cite it, how far
// two lines lie apart, and how large the job is known to be.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/finding.h"
#include "traces/model/evidence.h"

namespace ddx::analyzers {

template <class Fact>
struct Seen {
  const LogEvent* event;
  const Fact* fact;
};

// The events that hold a `Fact`, in order of input and line.
template <class Fact>
std::vector<Seen<Fact>> seen(const Evidence& evidence) {
  std::vector<Seen<Fact>> found;
  for (const LogEvent& event : evidence.events) {
    if (const auto* fact = std::get_if<Fact>(&event.fact)) found.push_back({&event, fact});
  }
  return found;
}

// The processes that ranks run in, where the evidence binds a (host, pid) or an address to them.
class ProcessTable {
 public:
  explicit ProcessTable(const Evidence& evidence);
  std::optional<RankId> rank_of(const std::string& host, std::int64_t pid) const;
  // Of a pid alone, as the kernel's log names it: only where one host alone has it.
  std::optional<RankId> rank_of(std::int64_t pid) const;
  // The rank of the line itself, or of the process that wrote it.
  std::optional<RankId> rank_of(const LogEvent& event) const;

 private:
  std::vector<std::pair<std::pair<std::string, std::int64_t>, RankId>> processes_;  // sorted
};

// Path, line and text of an event. `cite` appends it unless the finding cites enough already; the same line once only.
EvidenceLine line_of(const Evidence& evidence, const LogEvent& event);
void cite(Finding& finding, const Evidence& evidence, const LogEvent& event);

// "rank 3", "node-a pid 12", "train.log line 3": whoever wrote the line, as well as it is known.
std::string speaker(const Evidence& evidence, const LogEvent& event);
// "host node-a" where the host is known, else "log worker1.log": the subject of a finding about a machine.
std::string host_subject(const Evidence& evidence, const LogEvent& event);
// The file name of the event's input, without folders.
std::string file_name(const Evidence& evidence, const LogEvent& event);

// From `from` to `to`; nullopt where one has no time or only one has a date. Times of day wrap at midnight.
std::optional<Nanos> elapsed(const LogEvent& from, const LogEvent& to);
// Whether `a` was written before `b`: by time, or by line within one file; nullopt: not known.
std::optional<bool> before(const LogEvent& a, const LogEvent& b);

// The attempt of each event (by index): its own, or the last one that its file began before it; 0 where none is known.
std::vector<std::uint32_t> attempts_of(const Evidence& evidence);

// The number of ranks of the job as the evidence states it: nullopt where it does not, or contradicts itself.
std::optional<std::uint32_t> stated_world_size(const Evidence& evidence);
// Ranks that any record, line, file name or address table of the evidence speaks of as their own.
RankSet spoken_ranks(const Evidence& evidence);
// 0..W-1 where W is stated (and believable), with the ranks that spoke.
RankSet known_ranks(const Evidence& evidence);

// A call that blocks its host (gloo's) gave up waiting for a peer; the ranks whose own lines say so.
bool timed_out_waiting(const LogEvent& event);
RankSet ranks_that_timed_out(const Evidence& evidence);

// Whether a group name of a log is the world's: "", "0", "default_pg", "0(default_pg)".
bool is_default_group(std::string_view name);

// Lower-case search.
bool contains_text(std::string_view text, std::string_view lower_case_part);

// Whether an exception's text is about NaN or infinity: the values are the fault, not the process.
bool speaks_of_nan(std::string_view text);

// Of ranks by what they say: those outside the one class that holds more than half; all where no class does.
template <class Value>
RankSet minority(const std::map<Value, std::vector<RankId>>& classes) {
  std::size_t total = 0;
  for (const auto& [value, ranks] : classes) total += ranks.size();
  std::vector<RankId> named;
  for (const auto& [value, ranks] : classes) {
    if (ranks.size() * 2 <= total) named.insert(named.end(), ranks.begin(), ranks.end());
  }
  return RankSet(std::move(named));
}

// "a, b and c"; long lists end in "and N more".
std::string join_words(const std::vector<std::string>& words, std::size_t most = 6);

}  // namespace ddx::analyzers
