#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>

#include "traces/formats/importer.h"

namespace ddx::formats {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::optional<RankId> rank_from_digits(std::string_view digits) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return RankId(value);
}

template <std::size_t N>
bool one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  for (std::string_view w : words) {
    if (w == word) return true;
  }
  return false;
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

// The last number behind the word "rank", in lower-case text. Ranks that count something smaller than the job (a
// node's, a tensor-parallel group's) do not say who in the job it is.
std::optional<RankId> stated_rank(std::string_view text) {
  static constexpr std::array<std::string_view, 10> kOtherRanks{"local", "node", "group", "role", "tp",
                                                                "pp",    "dp",   "cp",    "ep",   "mp"};
  std::optional<RankId> found;
  for (std::size_t at = text.find("rank"); at != std::string_view::npos; at = text.find("rank", at + 4)) {
    std::size_t begin = at + 4;
    if (begin < text.size() && !is_digit(text[begin]) && !is_letter(text[begin])) ++begin;
    const std::size_t end = digits_end(text, begin);
    std::string_view before = word_before(text, at);
    if (end == begin || one_of(before, kOtherRanks)) continue;
    if (const auto rank = rank_from_digits(text.substr(begin, end - begin))) found = rank;
  }
  return found;
}

void remove_extensions(std::string_view& name) {
  static constexpr std::array<std::string_view, 21> kExtensions{
      ".json", ".pkl", ".pickle", ".log",   ".txt",   ".out", ".err", ".gz",  ".zst",  ".bz2", ".xz",
      ".pt",   ".bin", ".dump",   ".trace", ".jsonl", ".csv", ".ops", ".tmp", ".pipe", ".fr"};
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

// The last number of a file name that can be a rank. Numbers that say something else by their looks (a date, an
// address, a size with a unit, a process id, "node7", "step_100") are passed over.
std::optional<RankId> plain_number(std::string_view name) {
  static constexpr std::array<std::string_view, 27> kOtherWords{
      "rank",      "node",    "host",    "pid",   "tid", "job",  "step", "epoch", "iter",
      "iteration", "attempt", "restart", "run",   "v",   "gpu",  "port", "seed",  "version",
      "size",      "world",   "device",  "local", "gen", "cuda", "try",  "utc",   "part"};
  remove_extensions(name);
  std::vector<Number> numbers;
  for (std::size_t at = 0; at < name.size();) {
    if (!is_digit(name[at])) {
      ++at;
      continue;
    }
    numbers.push_back({at, digits_end(name, at)});
    at = numbers.back().end;
  }
  const std::vector<bool> run = in_long_run(name, numbers);
  for (std::size_t i = numbers.size(); i-- > 0;) {
    const auto [begin, end] = numbers[i];
    if (run[i] || end - begin > 5) continue;
    if (end < name.size() && is_letter(name[end])) continue;
    if (one_of(word_before(name, begin), kOtherWords)) continue;
    if (const auto rank = rank_from_digits(name.substr(begin, end - begin))) return rank;
  }
  return std::nullopt;
}

std::optional<RankId> by_pattern(const std::string& path, const std::regex& pattern) {
  try {
    std::smatch match;
    if (!std::regex_search(path, match, pattern) || match.size() < 2) return std::nullopt;
    return rank_from_digits(match[1].str());
  } catch (const std::regex_error&) {
    return std::nullopt;  // the pattern is too costly for this path: as good as no match
  }
}

}  // namespace

std::optional<RankId> rank_of_path(const std::string& path, const ImportOptions& options) {
  if (options.rank_from) {
    if (const auto rank = by_pattern(path, *options.rank_from)) return rank;
  }
  std::vector<std::string> parts;
  for (const auto& part : std::filesystem::path(path)) parts.push_back(lower(part.string()));
  for (std::size_t i = parts.size(); i-- > 0;) {
    if (const auto rank = stated_rank(parts[i])) return rank;
  }
  // The user's pattern is the better reader of unstated numbers; where it finds none there is none.
  if (parts.empty() || options.rank_from) return std::nullopt;
  if (const auto rank = plain_number(parts.back())) return rank;
  if (parts.size() < 2) return std::nullopt;
  const std::string& folder = parts[parts.size() - 2];
  if (folder.empty() || folder.size() > 5 || digits_end(folder, 0) != folder.size()) return std::nullopt;
  return rank_from_digits(folder);
}

}  // namespace ddx::formats
