// Groups that are alike, told together: a job of 4,096 ranks has hundreds of them.
#pragma once

#include <cstddef>
#include <vector>

#include "cli/report/inventory.h"

namespace ddx::cli {

struct GroupSet {
  std::vector<const GroupInventory*> groups;
  // The sums and unions over them; name, description and size are the first one's.
  GroupInventory together;
};

// Sets of `fewest` groups or more that have one size, the same kinds of operations, and one name but for numbers
// ("mesh_tp_3" and "mesh_tp_4"); the others alone. In order of their first. `groups` must outlive the answer.
std::vector<GroupSet> group_sets(const std::vector<GroupInventory>& groups, std::size_t fewest);

}  // namespace ddx::cli
