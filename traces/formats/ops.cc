#include "traces/formats/ops.h"

#include <algorithm>
#include <utility>

#include "traces/formats/ops_statements.h"

namespace ddx::formats {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// The next word of `line`, taken off it; empty at its end.
std::string_view take_word(std::string_view& line) {
  while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
  std::size_t end = 0;
  while (end < line.size() && !is_space(line[end])) ++end;
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

// The first line that is more than a comment; empty: there is none.
std::string_view first_statement(std::string_view head) {
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  while (!head.empty()) {
    const auto end = head.find('\n');
    std::string_view line = head.substr(0, end);
    head.remove_prefix(end == std::string_view::npos ? head.size() : end + 1);
    while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
    if (!line.empty() && line.front() != '#') return line;
  }
  return {};
}

// "0,2-4", and no date.
bool is_rank_list(std::string_view text) {
  char before = ',';  // the last sign that is no digit
  bool digit = false;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      digit = true;
      continue;
    }
    if (!digit || (c != ',' && c != '-') || (c == '-' && before == '-')) return false;
    before = c;
    digit = false;
  }
  return digit;
}

// "pg tp = 0,1" or "0,2-4 all_reduce f32 8": what may stand behind "world N" alone.
bool is_later_statement(std::string_view line) {
  const std::string_view first = take_word(line);
  const std::string_view second = take_word(line);
  if (first == "pg") return !second.empty() && take_word(line) == "=";
  if (first != "all" && !is_rank_list(first)) return false;
  const auto kind = op_kind_from(second);
  return kind && (is_collective(*kind) || is_p2p(*kind));
}

// Sure where the first statement is "world N". Without it a file that is meant to be one is taken all the same: its
// reader says which line is wrong, and what is expected there.
Sniff sniff_ops(const std::string& path, std::string_view head) {
  const std::string_view statement = first_statement(head);
  std::string_view rest = statement;
  const bool world = take_word(rest) == "world";
  const std::string_view number = take_word(rest);
  if (world && !number.empty() && number.front() >= '0' && number.front() <= '9') return Sniff::sure;
  if (path.ends_with(".ops") && head.find('\0') == std::string_view::npos) return Sniff::likely;
  return is_later_statement(statement) ? Sniff::maybe : Sniff::no;
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
