// The pages of `ddx explain`: what each finding code means. One table, in a file per section of docs/findings.md.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace ddx::cli {

struct ExplainPage {
  std::string_view code;
  std::string_view severity;      // "error", "warning", "info", or two of them with when
  std::string_view meaning;       // one or two sentences
  std::string_view ranks;         // whom the finding names
  std::string_view how_to_know;   // how to recognise it in evidence
  std::string_view usual_causes;  // the first is the commonest
  std::string_view what_to_do;
  std::string_view what_it_is_not;
};

struct ExplainSection {
  std::string_view title;
  std::span<const ExplainPage> pages;
};

const std::vector<ExplainSection>& explain_sections();
// Null where no finding has this code.
const ExplainPage* find_page(std::string_view code);

// Whether an analyzer of this version gives the finding of `page`: some pages say what is known of faults that ddx is
// yet to find.
bool is_found(const ExplainPage& page);

ExplainSection collective_pages();
ExplainSection liveness_pages();
ExplainSection launch_pages();
ExplainSection host_pages();
ExplainSection evidence_pages();

}  // namespace ddx::cli
