// What may have been meant by a mistyped word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddx::cli {

// Up to three of `candidates` that are near `word` by edit distance (a third of its length), and up to twelve that hold
// it; the nearest first.
std::vector<std::string> closest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace ddx::cli
