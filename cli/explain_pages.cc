#include "cli/explain_pages.h"

#include <algorithm>
#include <array>

namespace ddx::cli {
namespace {

// An analyzer that comes to give one of these takes it from here; a test compares with the analyzers' sources.
constexpr auto kNotFound = std::to_array<std::string_view>({
    "buffer-reuse",   "rank-not-stable", "world-size-units", "local-rank-rule", "hostfile-fallback", "addr-loopback",
    "addr-not-rank0", "port-range",      "rdzv-disagree",    "device-count",    "parallel-plan",     "env-value",
    "env-conflict",   "env-drift",       "env-unknown",      "mtu-mismatch",    "clock-skew",        "acs-redirect",
    "gpu-busy",       "gpu-count",       "cgroup-limit",     "name-resolution",
});

}  // namespace

const std::vector<ExplainSection>& explain_sections() {
  static const std::vector<ExplainSection> kSections{
      collective_pages(), liveness_pages(), launch_pages(), host_pages(), evidence_pages(),
  };
  return kSections;
}

const ExplainPage* find_page(std::string_view code) {
  for (const ExplainSection& section : explain_sections()) {
    for (const ExplainPage& page : section.pages) {
      if (page.code == code) return &page;
    }
  }
  return nullptr;
}

bool is_found(const ExplainPage& page) {
  return std::find(kNotFound.begin(), kNotFound.end(), page.code) == kNotFound.end();
}

}  // namespace ddx::cli
