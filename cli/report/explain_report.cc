#include "cli/report/explain_report.h"

#include <fmt/format.h>

#include "cli/report/json_text.h"
#include "cli/report/text_layout.h"

namespace ddx::cli {
namespace {

constexpr std::size_t kCodeColumn = 22;
constexpr std::size_t kTextColumn = 18;

Json json_of(const ExplainPage& page) {
  return {{"code", page.code},
          {"severity", page.severity},
          {"meaning", page.meaning},
          {"ranks", page.ranks},
          {"how_to_know", page.how_to_know},
          {"usual_causes", page.usual_causes},
          {"what_to_do", page.what_to_do},
          {"what_it_is_not", page.what_it_is_not},
          {"found_by_this_version", is_found(page)}};
}

}  // namespace

std::string explain_page_text(const ExplainPage& page, const RenderOptions& options) {
  Page out(options.width, options.color);
  out.paragraph(page.code, kTextColumn, page.meaning, Style::bold);
  if (!is_found(page)) out.paragraph("", kTextColumn, "This version of ddx does not find it: the page is for reading.");
  if (options.quiet) return out.take();
  out.blank();
  out.paragraph("  severity", kTextColumn, page.severity, Style::dim);
  out.paragraph("  ranks it names", kTextColumn, page.ranks, Style::dim);
  out.paragraph("  how to know", kTextColumn, page.how_to_know, Style::dim);
  out.paragraph("  usual causes", kTextColumn, page.usual_causes, Style::dim);
  out.paragraph("  what to do", kTextColumn, page.what_to_do, Style::dim);
  out.paragraph("  what it is not", kTextColumn, page.what_it_is_not, Style::dim);
  return out.take();
}

std::string explain_page_json(const ExplainPage& page) { return json_text(json_of(page)); }

std::string explain_list_text(const RenderOptions& options) {
  Page out(options.width, options.color);
  for (const ExplainSection& section : explain_sections()) {
    out.blank();
    out.paragraph("", 0, section.title, Style::plain, Style::bold);
    for (const ExplainPage& page : section.pages) {
      std::string text(options.quiet ? "" : page.meaning);
      if (!is_found(page)) text += fmt::format("{}[not found by this version]", text.empty() ? "" : " ");
      out.paragraph(fmt::format("  {}", page.code), kCodeColumn, text);
    }
  }
  out.blank();
  out.paragraph("", 0, "'ddx explain CODE' says more about one.");
  return out.take();
}

std::string explain_list_json() {
  Json list = Json::array();
  for (const ExplainSection& section : explain_sections()) {
    for (const ExplainPage& page : section.pages) list.push_back(json_of(page));
  }
  return json_text(list);
}

}  // namespace ddx::cli
