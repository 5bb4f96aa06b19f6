// One function for each algorithm, in a file of its name: a new one is declared here and has a line in registry.cc.
#pragma once

#include "sim/collectives/algorithm.h"

namespace ddx::sim {

Algorithm ring();
Algorithm tree();
Algorithm halving_doubling();
Algorithm recursive_doubling();
Algorithm rabenseifner();
Algorithm gloo_ring();
Algorithm gloo_ring_chunked();
Algorithm bcube();
Algorithm binomial();
Algorithm linear();
Algorithm pairwise();
Algorithm bruck();
Algorithm pat();
Algorithm dissemination();
Algorithm point_to_point();
Algorithm nvls();
Algorithm nvlstree();
Algorithm collnet_direct();
Algorithm collnet_chain();

}  // namespace ddx::sim
