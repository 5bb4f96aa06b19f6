#include <algorithm>
#include <array>
#include <string_view>

#include "analyzers/analyzer.h"
#include "analyzers/checker/checker.h"
#include "analyzers/hosts/hosts.h"
#include "analyzers/judge.h"
#include "analyzers/launch/launch.h"
#include "analyzers/liveness/liveness.h"
#include "analyzers/liveness/stacks.h"
#include "analyzers/quality/quality.h"
#include "analyzers/snapshot_judge.h"
#include "analyzers/straggler/straggler.h"

namespace ddx::analyzers {

const std::vector<Analyzer>& analyzers() {
  static const std::vector<Analyzer> kAnalyzers{
      {"calls", judge_snapshot},
      {"calls.quality", judge_trace_quality},
      {"straggler", judge_stragglers},
      {"liveness.process_end", judge_process_ends},
      {"liveness.absence", judge_absence},
      {"liveness.watchdog", judge_watchdog},
      {"liveness.told_absent", judge_told_absent},
      {"liveness.host_timeout", judge_host_timeouts},
      {"liveness.stacks", judge_stacks},
      {"launch.store_barrier", judge_store_barrier},
      {"launch.worlds", judge_worlds},
      {"launch.identity", judge_identity},
      {"launch.devices", judge_devices},
      {"hosts.network", judge_network},
      {"hosts.adapters", judge_adapters},
      {"hosts.limits", judge_host_limits},
      {"hosts.gpus", judge_gpus},
      {"hosts.tuning", judge_tuning},
      {"hosts.versions", judge_versions},
      {"hosts.names", judge_names},
      {"checker.wrapper", judge_wrapper},
      {"checker.ras", judge_ras},
      {"checker.idle", judge_idle},
      {"checker.nan", judge_nan},
  };
  return kAnalyzers;
}

std::vector<Finding> analyze(const Evidence& evidence) {
  std::vector<Finding> findings;
  for (const Analyzer& analyzer : analyzers()) {
    for (Finding& finding : analyzer.run(evidence)) findings.push_back(std::move(finding));
  }
  findings = settle(std::move(findings));
  // These warnings are beside the point: no process ends because of them.
  constexpr std::array<std::string_view, 5> kBeside{"timeout-short", "shifted", "version-skew", "trace-time-skew",
                                                    "trace-unknown-op"};
  const bool concluded = std::any_of(findings.begin(), findings.end(), [&](const Finding& f) {
    if (f.code == "no-fault" || f.code == "inconclusive") return true;
    return f.severity != Severity::info && std::find(kBeside.begin(), kBeside.end(), f.code) == kBeside.end();
  });
  if (concluded) return findings;
  if (auto ends = judge_unexplained_ends(evidence)) findings.push_back(std::move(*ends));
  return findings;
}

}  // namespace ddx::analyzers
