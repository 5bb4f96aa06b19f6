#include "traces/formats/ops.h"

#include <algorithm>
#include <utility>

#include "traces/formats/ops_statements.h"

namespace ddx::formats {
namespace {

// The first line that is more than a comment says "world N".
Sniff sniff_ops(const std::string&, std::string_view head) {
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  while (!head.empty()) {
    const auto end = head.find('\n');
    std::string_view line = head.substr(0, end);
    head.remove_prefix(end == std::string_view::npos ? head.size() : end + 1);
    const auto first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || line[first] == '#') continue;
    line.remove_prefix(first);
    if (!line.starts_with("world")) return Sniff::no;
    line.remove_prefix(5);
    const auto number = line.find_first_not_of(" \t");
    const bool sure = number != std::string_view::npos && number > 0 && line[number] >= '0' && line[number] <= '9';
    return sure ? Sniff::sure : Sniff::no;
  }
  return Sniff::no;
}

void import_ops(const Source& source, const ImportOptions& options, Evidence& out) {
  // A few bytes of this notation can describe a great deal: what a file may cost beyond its own size is bounded.
  constexpr std::uint64_t kFree = 16'000'000, kPerByte = 8;
  OpsBudget budget(std::min(options.max_ops_per_file, kFree + kPerByte * source.bytes.size()));
  OpsFile file = parse_ops(source, out.trace, budget);
  build_ops(source, file, out, budget);
  if (out.inputs.empty()) return;
  std::vector<RankId> ranks;
  for (const RankRecord& record : out.trace.ranks) ranks.push_back(*record.rank);
  out.inputs[0].ranks = RankSet(std::move(ranks));
}

}  // namespace

Importer ops_importer() { return {"ops", "operations per rank as text (docs/ops-notation.md)", sniff_ops, import_ops}; }

Evidence read_ops(std::string_view text, const std::string& path, const ImportOptions& options) {
  Evidence evidence;
  Input& input = evidence.inputs.emplace_back();
  input.path = path;
  input.format = "ops";
  import_ops({path, text}, options, evidence);
  return evidence;
}

}  // namespace ddx::formats
