#include "traces/formats/rank_of_path.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "traces/formats/importer.h"
#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

std::optional<RankId> rank_from_digits(std::string_view digits) {
  return all_digits(digits) ? rank_at(digits) : std::nullopt;
}

template <std::size_t kSize>
bool one_of(std::string_view word, const std::array<std::string_view, kSize>& words) {
  for (std::string_view w : words) {
    if (w == word) return true;
  }
  return false;
}

// Chakra's rule: NAME.RANK.et, whatever the name is.
std::optional<RankId> chakra_rank(std::string_view name) {
  if (name.ends_with(".gz")) name.remove_suffix(3);
  if (!name.ends_with(".et")) return std::nullopt;
  name.remove_suffix(3);
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::nullopt : rank_from_digits(name.substr(dot + 1));
}

// The word that ends before `at`, separators between skipped: "node" in "node_|7". Empty where a digit stands there.
std::string_view word_before(std::string_view text, std::size_t at) {
  while (at > 0 && !is_letter(text[at - 1]) && !is_digit(text[at - 1])) --at;
  std::size_t begin = at;
  while (begin > 0 && is_letter(text[begin - 1])) --begin;
  return text.substr(begin, at - begin);
}

std::size_t digits_end(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

// Whether the "rank" behind `before` is one of the job. Ranks that count something smaller than it (a node's, a
// tensor-parallel group's), the rank of a matrix, and words that end like one ("frank") do not say who in the job it
// is.
bool is_rank_of_job(std::string_view before, bool attached) {
  static constexpr auto kOtherRanks = std::to_array<std::string_view>(
      {"local", "node", "group", "role",   "tp",    "pp",     "dp",       "cp",     "ep", "mp",
       "sp",    "lora", "low",   "matrix", "full",  "tensor", "model",    "data",   "ff", "pipeline",
       "max",   "min",  "num",   "page",   "stage", "expert", "sequence", "context"});
  if (one_of(before, kOtherRanks)) return false;
  return !attached || before.empty() || before.size() > 2 || before == "my";
}

void remove_extensions(std::string_view& name) {
  static constexpr std::array<std::string_view, 22> kExtensions{
      ".json", ".pkl", ".pickle", ".log",   ".txt",   ".out", ".err", ".gz",  ".zst",  ".bz2", ".xz",
      ".pt",   ".bin", ".dump",   ".trace", ".jsonl", ".csv", ".ops", ".tmp", ".pipe", ".fr",  ".et"};
  // "train.log.1": the number of an older log.
  const std::size_t dot = name.rfind('.');
  if (dot != std::string_view::npos && all_digits(name.substr(dot + 1)) && name.substr(0, dot).ends_with(".log")) {
    name = name.substr(0, dot);
  }
  for (bool again = true; again;) {
    again = false;
    for (std::string_view extension : kExtensions) {
      if (name.size() > extension.size() && name.ends_with(extension)) {
        name.remove_suffix(extension.size());
        again = true;
      }
    }
  }
}

struct Number {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Whether digits joined by one of "-_.:" to other digits are a date, a time of day or an address: three or more in a
// row. A rank that follows such a run is apart from it by a longer separator or a word.
bool joined(std::string_view name, const Number& left, const Number& right) {
  if (right.begin != left.end + 1) return false;
  const char c = name[left.end];
  return c == '-' || c == '_' || c == '.' || c == ':';
}

// Marks the numbers of runs of three or more with the same separator ("2024-05-01", "10.0.0.7", "12_30_59").
std::vector<bool> in_long_run(std::string_view name, const std::vector<Number>& numbers) {
  std::vector<bool> marked(numbers.size(), false);
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && joined(name, numbers[last], numbers[last + 1]) &&
           (last == i || name[numbers[last].end] == name[numbers[i].end])) {
      ++last;
    }
    if (last - i >= 2)
      std::fill(marked.begin() + static_cast<long>(i), marked.begin() + static_cast<long>(last) + 1, true);
    i = last + 1;
  }
  return marked;
}

// Whether "of 8" follows at `at`: "3_of_8", "3of8".
bool of_follows(std::string_view name, std::size_t at) {
  if (at < name.size() && !is_letter(name[at]) && !is_digit(name[at])) ++at;
  return name.substr(at).starts_with("of") && at + 2 < name.size() && !is_letter(name[at + 2]);
}

std::vector<Number> numbers_in(std::string_view name) {
  std::vector<Number> numbers;
  for (std::size_t at = 0; at < name.size();) {
    if (!is_digit(name[at])) {
      ++at;
      continue;
    }
    numbers.push_back({at, digits_end(name, at)});
    at = numbers.back().end;
  }
  return numbers;
}

// The last number of a file name that can be a rank. Numbers that say something else by their looks (a date, an
// address, a size with a unit, a process id, "node7", "step_100", "of_8") are passed over.
std::optional<RankId> plain_number(std::string_view name) {
  static constexpr auto kOtherWords = std::to_array<std::string_view>(
      {"rank",    "node",  "host", "pid", "tid",  "job",  "step",    "epoch", "iter",  "iteration", "attempt",
       "restart", "run",   "v",    "gpu", "port", "seed", "version", "size",  "world", "device",    "local",
       "gen",     "cuda",  "try",  "utc", "part", "of",   "nranks",  "ws",    "np",    "nproc",     "nprocs",
       "nnodes",  "ngpus", "lora", "tp",  "pp",   "dp",   "cp",      "ep",    "mp",    "bs",        "batch"});
  remove_extensions(name);
  const std::vector<Number> numbers = numbers_in(name);
  const std::vector<bool> run = in_long_run(name, numbers);
  // "ranks0-7": of several.
  for (const Number& number : numbers) {
    if (word_before(name, number.begin) == "ranks") return std::nullopt;
  }
  for (std::size_t i = numbers.size(); i-- > 0;) {
    const auto [begin, end] = numbers[i];
    if (run[i] || end - begin > 5) continue;
    if (end < name.size() && is_letter(name[end]) && !of_follows(name, end)) continue;
    const std::string_view word = word_before(name, begin);
    if (word.ends_with("rank") || one_of(word, kOtherWords)) continue;
    if (const auto rank = rank_from_digits(name.substr(begin, end - begin))) return rank;
  }
  return std::nullopt;
}

// Whether a folder is named for a rank and nothing else: "rank_3", "global-rank3".
bool is_named_for_a_rank(std::string_view folder) {
  if (folder.starts_with("global")) folder.remove_prefix(folder.size() > 6 && !is_letter(folder[6]) ? 7 : 6);
  if (!folder.starts_with("rank")) return false;
  folder.remove_prefix(4);
  if (!folder.empty() && !is_digit(folder.front()) && !is_letter(folder.front())) folder.remove_prefix(1);
  return all_digits(folder);
}

}  // namespace

std::optional<RankId> stated_rank(std::string_view part) {
  const std::string text = lower(part);
  const std::string_view name = text;
  std::optional<RankId> found;
  for (std::size_t at = name.find("rank"); at != std::string_view::npos; at = name.find("rank", at + 4)) {
    std::size_t begin = at + 4;
    if (begin < name.size() && !is_digit(name[begin]) && !is_letter(name[begin])) ++begin;
    const std::size_t end = digits_end(name, begin);
    const bool attached = at > 0 && is_letter(name[at - 1]);
    if (end == begin || !is_rank_of_job(word_before(name, at), attached)) continue;
    if (const auto rank = rank_from_digits(name.substr(begin, end - begin))) found = rank;
  }
  return found;
}

std::optional<RankId> rank_by_pattern(const std::string& path, const std::regex& pattern) {
  try {
    std::smatch match;
    if (!std::regex_search(path, match, pattern) || match.size() < 2) return std::nullopt;
    return rank_from_digits(match[1].str());
  } catch (const std::regex_error&) {
    return std::nullopt;  // the pattern is too costly for this path: as good as no match
  }
}

std::optional<RankId> rank_of_path(const std::string& path, const ImportOptions& options) {
  if (options.rank_from) {
    if (const auto rank = rank_by_pattern(path, *options.rank_from)) return rank;
  }
  std::vector<std::string> parts;
  for (const auto& part : std::filesystem::path(path)) parts.push_back(lower(part.string()));
  if (parts.empty()) return std::nullopt;
  const std::string name = std::move(parts.back());
  parts.pop_back();
  if (const auto rank = options.rank_from ? std::nullopt : chakra_rank(name)) return rank;
  if (const auto rank = stated_rank(name)) return rank;
  for (std::size_t i = parts.size(); i-- > 0;) {
    if (is_named_for_a_rank(parts[i])) return stated_rank(parts[i]);
  }
  // The user's pattern is the better reader of unstated numbers.
  if (!options.rank_from) {
    // A folder whose name only holds a rank may be an experiment's: the file's own number is closer.
    if (const auto rank = plain_number(name)) return rank;
  }
  for (std::size_t i = parts.size(); i-- > 0;) {
    if (const auto rank = stated_rank(parts[i])) return rank;
  }
  if (options.rank_from || parts.empty()) return std::nullopt;
  const std::string& folder = parts.back();
  return folder.size() <= 5 ? rank_from_digits(folder) : std::nullopt;
}

}  // namespace ddx::formats
