// What a run of programs came to, for people.
#pragma once

#include "cli/report/report.h"
#include "cli/report/text_layout.h"

namespace ddx::cli {

// The headline where nothing was found: that all ran to its end, and how long it takes.
void show_completes(Page& page, const Simulation& simulation);
// How long it takes and where the time goes, and what was taken for granted. `told`: why there is no time stands in the
// headline.
void show_simulation(Page& page, const Simulation& simulation, bool told);

// Which algorithm and protocol collectives took.
void show_choices(Page& page, const Simulation& simulation);

}  // namespace ddx::cli
