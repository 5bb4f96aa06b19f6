#include "cli/explain_pages.h"

namespace ddx::cli {

const std::vector<ExplainSection>& explain_sections() {
  static const std::vector<ExplainSection> kSections{
      collective_pages(), liveness_pages(), launch_pages(), host_pages(), evidence_pages(),
  };
  return kSections;
}

const ExplainPage* find_page(std::string_view code) {
  for (const ExplainSection& section : explain_sections()) {
    for (const ExplainPage& page : section.pages) {
      if (page.code == code) return &page;
    }
  }
  return nullptr;
}

}  // namespace ddx::cli
