// Hosts, links, adapters and libraries as logs show them. These findings name hosts, links and devices in `subjects`;
// no rank is at fault for the machine it runs on.
#pragma once

#include <vector>

#include "base/finding.h"
#include "traces/model/evidence.h"

namespace ddx::analyzers {

// `network`: broken completions, port events, unreachable peers. `port-blocked`: a port is taken. `mismatch-size`: more
// came over a link than its end expects. `inconclusive`: connections lost for no shown reason.
std::vector<Finding> judge_network(const Evidence& evidence);
// `nic-asymmetry`: hosts that use different adapters or transports. `iface-loopback`: interfaces that reach no other
// host.
std::vector<Finding> judge_adapters(const Evidence& evidence);
// `gpu-fault`: what the driver says of a device (Xid), or a rank's own error says.
std::vector<Finding> judge_gpus(const Evidence& evidence);
// `shm-small`, `memlock-low`, `nofile-low`, `disk-low`.
std::vector<Finding> judge_host_limits(const Evidence& evidence);
// `host-asymmetry`: processes that choose different algorithms or protocols for one operation.
std::vector<Finding> judge_tuning(const Evidence& evidence);
// `version-skew`.
std::vector<Finding> judge_versions(const Evidence& evidence);
// `addr-unresolved`.
std::vector<Finding> judge_names(const Evidence& evidence);

}  // namespace ddx::analyzers
