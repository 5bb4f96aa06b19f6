// One function for each algorithm, in a file of its name: a new one is declared here and has a line in registry.cc.
#pragma once

#include "sim/collectives/algorithm.h"

namespace ddx::sim {

Algorithm ring();

}  // namespace ddx::sim
