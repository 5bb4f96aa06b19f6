// How processes ended, by their own words and their launcher's, and which of the ends follow from others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/model/evidence.h"

namespace ddx::analyzers {

struct End {
  const LogEvent* event = nullptr;
  std::optional<RankId> rank;
  std::string what;  // "raised KeyError: 'x' (train.py:565)": follows the name of the rank
  std::string kind;  // equal for ends of one kind: the exception's type, the signal
  std::uint32_t attempt = 0;
  std::optional<std::int64_t> signal;
  bool exception = false;          // of the user's program: the process itself said why
  bool weak = false;               // an exit code alone
  bool perhaps_caught = false;     // its rank reports work after it
  bool consequence = false;        // of another end, or of a hang
  bool left_hang = false;          // an exit code alone of a rank that had dumped while calls were waited in
  bool first_by_launcher = false;  // torchelastic's "first observed failure"
  bool by_launcher = false;
};

// The ends of one attempt of the job, in order of the evidence. Exceptions that were caught and survived are left out.
struct AttemptEnds {
  std::uint32_t attempt = 0;
  std::vector<End> ends;
  bool any_timeout = false;  // a watchdog gave up in this attempt
};

// By attempt, ascending; attempts in which nothing ended are left out.
std::vector<AttemptEnds> ends_by_attempt(const Evidence& evidence);

// One end for each rank, the one that says most, and all whose rank is not known.
std::vector<End> one_a_rank(const std::vector<End>& ends);

// gloo's word for data of another size than the receiver expects.
bool received_another_size(std::string_view what);
// Whether an error's text is about a connection to somebody else.
bool speaks_of_a_peer(std::string_view what);

}  // namespace ddx::analyzers
