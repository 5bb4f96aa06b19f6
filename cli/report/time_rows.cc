#include "cli/report/time_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace ddx::cli {
namespace {

constexpr std::size_t kShown = 16;

std::string share(Nanos part, Nanos whole) {
  return fmt::format("{:.1f} %", whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string line_of(const analyzers::RankTime& time) {
  const analyzers::TimeParts& parts = time.parts;
  const Nanos span = parts.total();
  return fmt::format(
      "  {:>6} {:>10} {:>9} {:>10} {:>13} {:>7} {:>7} {:>12}", time.rank ? std::to_string(time.rank->value) : "?",
      format_duration(span), share(parts.compute + parts.overlapped, span), share(parts.overlapped, span),
      share(parts.exposed, span), share(parts.bubble, span), share(parts.idle, span), share(parts.unattributed, span));
}

Json json_of(const analyzers::TimeParts& parts) {
  return {{"span_ns", parts.total()},
          {"compute_ns", parts.compute + parts.overlapped},
          {"communication_ns", parts.exposed},
          {"bubble_ns", parts.bubble},
          {"idle_ns", parts.idle},
          {"unattributed_ns", parts.unattributed},
          {"overlapped_ns", parts.overlapped}};
}

}  // namespace

void show_times(Page& page, const std::vector<analyzers::RankTime>& times, bool all) {
  if (times.empty()) return;
  std::vector<const analyzers::RankTime*> order;
  for (const analyzers::RankTime& time : times) order.push_back(&time);
  const std::size_t shown = all ? order.size() : std::min(order.size(), kShown);
  std::stable_sort(order.begin(), order.end(), [](const analyzers::RankTime* a, const analyzers::RankTime* b) {
    return a->parts.total() > b->parts.total();
  });
  order.resize(shown);
  std::stable_sort(order.begin(), order.end(), [](const analyzers::RankTime* a, const analyzers::RankTime* b) {
    return a->rank.value_or(RankId(-1)) < b->rank.value_or(RankId(-1));
  });
  page.blank();
  page.paragraph("", 0, "Where the time goes:");
  page.paragraph("", 0,
                 fmt::format("  {:>6} {:>10} {:>9} {:>10} {:>13} {:>7} {:>7} {:>12}", "rank", "span", "computing",
                             "overlapped", "communicating", "bubble", "idle", "unattributed"));
  for (const analyzers::RankTime* time : order) page.paragraph("", 0, line_of(*time));
  if (shown < times.size()) {
    page.paragraph("", 0, fmt::format("  ... and {} more (--verbose shows them)", format_count(times.size() - shown)));
  }
}

Json times_json(const std::vector<analyzers::RankTime>& times) {
  Json out = Json::array();
  for (const analyzers::RankTime& time : times) {
    Json row{{"rank", time.rank ? Json(time.rank->value) : Json(nullptr)}};
    row.update(json_of(time.parts));
    Json streams = Json::array();
    for (const analyzers::StreamTime& stream : time.streams) {
      Json own{{"stream", stream.stream ? Json(*stream.stream) : Json(nullptr)}};
      own.update(json_of(stream.parts));
      streams.push_back(std::move(own));
    }
    row["streams"] = std::move(streams);
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace ddx::cli
