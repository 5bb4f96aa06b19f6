#include "traces/formats/log_sniff.h"

#include <algorithm>

#include "base/printable.h"
#include "traces/formats/log_filter.h"
#include "traces/formats/log_scan.h"
#include "traces/formats/stack_log.h"

namespace ddx::formats {
namespace {

// A run of so many NULs is a hole: what a node that crashed had not yet written, or what a log that was cut short under
// its writer lacks at its beginning.
constexpr std::size_t kHole = 16;

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// What stands behind the name that says "an older one": the number or date of "job.log.1", "job.log-20261129".
std::string_view without_age(std::string_view name) {
  for (;;) {
    std::size_t size = name.size();
    while (size > 0 && (is_digit(name[size - 1]) || name[size - 1] == '-' || name[size - 1] == '_')) --size;
    const std::string_view kept = name.substr(0, size);
    if (kept.ends_with(".")) {
      name = kept.substr(0, size - 1);
    } else if (one_of(kept.substr(std::min(size, kept.rfind('.'))), {".log", ".out", ".err"})) {
      return kept;
    } else if (name.ends_with(".old") || name.ends_with(".bak") || name.ends_with(".prev")) {
      name = name.substr(0, name.rfind('.'));
    } else {
      return name;
    }
  }
}

// The last ending of a file's name, in small letters; empty where there is none.
std::string extension_of(const std::string& path) {
  const std::string name = lower(std::string_view(path).substr(path.find_last_of('/') + 1));
  const std::string_view kept = without_age(name);
  const std::size_t dot = kept.rfind('.');
  return dot == std::string_view::npos ? std::string() : std::string(kept.substr(dot));
}

// The next byte that is not of a hole.
std::size_t behind_hole(std::string_view head, std::size_t at) {
  const std::size_t end = std::min(head.size(), head.find_first_not_of('\0', at));
  return end - at >= kHole || end == head.size() ? end : at;
}

// Mostly printable: a few stray bytes are in many logs (a cut character, a colour, a NUL).
bool looks_like_text(std::string_view head) {
  std::size_t bad = 0;
  std::size_t seen = 0;
  for (std::size_t at = 0; at < head.size();) {
    if (head[at] == '\0') {
      const std::size_t next = behind_hole(head, at);
      if (next != at) {
        at = next;
        continue;
      }
    }
    const std::size_t step = code_point_at(head, at).length;
    const auto c = static_cast<unsigned char>(head[at]);
    const bool no_utf8 = c >= 0x80 && step == 1;
    const bool control = c < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != 0x1b && c != '\f' && c != '\b';
    // A character that the end of the head cuts is none.
    if ((no_utf8 && head.size() - at > 3) || control) ++bad;
    at += step;
    seen += step;
  }
  return seen > 0 && bad * 20 <= seen;
}

}  // namespace

bool holds_a_known_line(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const unsigned interests = interests_of(line);
    if ((interests & ~(kProgress | kStack)) != 0) return true;
    if ((interests & kStack) != 0 && is_stack_header(line)) return true;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return false;
}

bool has_log_extension(const std::string& path) {
  const std::string extension = extension_of(path);
  if (one_of(extension, {".log", ".out", ".err", ".stderr", ".stdout"})) return true;
  // PBS writes "name.o4711" and "name.e4711".
  return extension.size() > 3 && (extension[1] == 'o' || extension[1] == 'e') && all_digits(extension.substr(2));
}

Sniff sniff_log(const std::string& path, std::string_view head) {
  if (head.empty() || !looks_like_text(head)) return Sniff::no;
  const std::string extension = extension_of(path);
  // Sources, documents and data quote log lines.
  if (one_of(extension, {".md",  ".rst", ".html", ".py",   ".cc",  ".cpp",  ".h",   ".cu",  ".sh",  ".json",
                         ".csv", ".tsv", ".xml",  ".yaml", ".yml", ".toml", ".ini", ".env", ".ops", ".ipynb"})) {
    return Sniff::no;
  }
  if (has_log_extension(path)) return Sniff::likely;
  const bool known = holds_a_known_line(head);
  if (extension == ".txt") return known ? Sniff::likely : Sniff::maybe;
  return known ? Sniff::maybe : Sniff::no;
}

}  // namespace ddx::formats
