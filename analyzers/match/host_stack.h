// Where the hosts of ranks stood when somebody last looked: the stacks of the logs, one a rank. Nothing here is a
// judgement.
#pragma once

#include <string>
#include <vector>

#include "base/finding.h"
#include "traces/model/evidence.h"

namespace ddx::analyzers {

struct RankStack {
  RankId rank;
  const LogEvent* event = nullptr;
  const HostStack* stack = nullptr;
};

// The last known main thread of each rank, ascending by rank. Stacks of earlier attempts are over. Where a call timed
// out, later stacks outside torch.distributed only show the process ending.
std::vector<RankStack> last_host_stacks(const Evidence& evidence);

// "train.py:12 in step", the folders left out; "" where no frame is the user's.
std::string short_call_site(const HostStack& stack);
// "recv, called at train.py:12 in step", "train.py:12 in step", "wait in threading.py:320".
std::string place_text(const HostStack& stack);
// "The main thread of rank 3 is in train.py:12 in step.", with the end of the line.
std::string stack_sentence(const RankStack& seen);
// The stack as a line to cite.
EvidenceLine stack_evidence(const Evidence& evidence, const RankStack& seen);

}  // namespace ddx::analyzers
