#include "analyzers/analyzer.h"

namespace ddx::analyzers {

const std::vector<Analyzer>& analyzers() {
  static const std::vector<Analyzer> kAnalyzers{};
  return kAnalyzers;
}

std::vector<Finding> analyze(const Evidence& evidence) {
  std::vector<Finding> findings;
  for (const Analyzer& analyzer : analyzers()) {
    for (Finding& finding : analyzer.run(evidence)) findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace ddx::analyzers
