// `ddx explain`, printed.
#pragma once

#include <string>

#include "cli/explain_pages.h"
#include "cli/report/reporter.h"

namespace ddx::cli {

std::string explain_page_text(const ExplainPage& page, const RenderOptions& options);
std::string explain_page_json(const ExplainPage& page);
std::string explain_list_text(const RenderOptions& options);
std::string explain_list_json();

}  // namespace ddx::cli
