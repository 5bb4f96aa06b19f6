// Which files the given paths stand for.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostics.h"

namespace ddx::formats {

// The files below `paths`, each once, ordered by path. Folders are walked (links followed, loops cut, hidden entries
// left out); a path given itself is taken even if hidden. A file reached by two names counts once, under the first in
// order. What could not be walked is counted in `diagnostics`. A given path that leads nowhere stays in the list:
// reading it says what is the matter, and the others are worth no less for it.
std::vector<std::string> files_below(const std::vector<std::string>& paths, Diagnostics& diagnostics);

}  // namespace ddx::formats
