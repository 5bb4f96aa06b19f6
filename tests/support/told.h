// Findings as text, for the message of a test that fails.
#pragma once

#include <string>
#include <vector>

#include "base/finding.h"

namespace ddx::testing {

inline std::string told(const std::vector<Finding>& findings) {
  std::string all;
  for (const Finding& f : findings) {
    all += f.code + " " + std::string(name_of(f.severity)) + " " + std::string(name_of(f.confidence)) + " " +
           f.ranks.text() + ": " + f.summary + "\n" + f.explanation;
  }
  return all.empty() ? "nothing" : all;
}

}  // namespace ddx::testing
