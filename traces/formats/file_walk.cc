#include "traces/formats/file_walk.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

namespace ddx::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxFiles = 4'000'000;

// What a name leads to, links followed: two names with one identity are one file.
using Identity = std::pair<dev_t, ino_t>;

struct Found {
  std::string path;
  bool known = false;  // whether `identity` could be had
  Identity identity;
};

struct Walk {
  Diagnostics* diagnostics;
  std::set<Identity> folders;
  std::vector<Found> files;
};

void add_file(Walk& walk, const std::string& path, const struct stat* about) {
  Found found{path, false, {}};
  if (about != nullptr) {
    found.known = true;
    found.identity = {about->st_dev, about->st_ino};
  }
  walk.files.push_back(std::move(found));
}

std::vector<std::string> entries_of(const std::string& folder, Walk& walk) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  while (!error && entry != fs::directory_iterator()) {
    std::string name = entry->path().filename().string();
    if (!name.starts_with('.')) names.push_back(std::move(name));
    entry.increment(error);
  }
  if (error) {
    walk.diagnostics->count("load.unreadable_folder", DiagnosticSeverity::data_loss, folder + ": " + error.message());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void walk_folder(const std::string& top, Walk& walk) {
  // Depth first with a stack of its own: the depth of a hostile tree must not be ours.
  std::vector<std::pair<std::string, std::size_t>> open{{top, 0}};
  while (!open.empty()) {
    const auto [folder, depth] = open.back();
    open.pop_back();
    for (const std::string& name : entries_of(folder, walk)) {
      if (walk.files.size() >= kMaxFiles) {
        walk.diagnostics->count("load.too_many_files", DiagnosticSeverity::data_loss,
                                folder + ": more files than ddx takes (" + std::to_string(kMaxFiles) + ")");
        return;
      }
      const std::string path = (fs::path(folder) / name).string();
      struct stat about = {};
      if (::stat(path.c_str(), &about) != 0) {
        add_file(walk, path, nullptr);  // a dangling link or a file that went away: reading it says so
      } else if (S_ISFIFO(about.st_mode) && name.ends_with(".request")) {
        continue;  // what a process under `ddx wrap` listens on
      } else if (!S_ISDIR(about.st_mode)) {
        add_file(walk, path, &about);
      } else if (depth + 1 >= kMaxDepth) {
        walk.diagnostics->count("load.deep_folder", DiagnosticSeverity::data_loss,
                                path + ": nested deeper than " + std::to_string(kMaxDepth) + " folders");
      } else if (walk.folders.insert({about.st_dev, about.st_ino}).second) {
        open.emplace_back(path, depth + 1);
      }
    }
  }
}

// "a/./b//" as "a/b"; as given where that leads elsewhere ("link/../b").
std::string plain_name(const std::string& given, const struct stat& about) {
  std::string path = fs::path(given).lexically_normal().string();
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  struct stat there = {};
  const bool same = ::stat(path.c_str(), &there) == 0 && there.st_dev == about.st_dev && there.st_ino == about.st_ino;
  return same ? path : given;
}

}  // namespace

std::vector<std::string> files_below(const std::vector<std::string>& paths, Diagnostics& diagnostics) {
  Walk walk{&diagnostics, {}, {}};
  for (const std::string& given : paths) {
    struct stat about = {};
    if (::stat(given.c_str(), &about) != 0) {
      add_file(walk, given, nullptr);  // reading it says what is the matter; the other paths are worth as much
      continue;
    }
    const std::string path = plain_name(given, about);
    if (!S_ISDIR(about.st_mode)) {
      add_file(walk, path, &about);
    } else if (walk.folders.insert({about.st_dev, about.st_ino}).second) {
      walk_folder(path, walk);
    }
  }
  std::sort(walk.files.begin(), walk.files.end(), [](const Found& a, const Found& b) { return a.path < b.path; });
  std::vector<std::string> files;
  std::set<Identity> seen;
  for (Found& found : walk.files) {
    if (!files.empty() && files.back() == found.path) continue;
    // A second name of a file would look like a second process that claims the same rank.
    if (found.known && !seen.insert(found.identity).second) {
      diagnostics.count("load.same_file", DiagnosticSeverity::info,
                        found.path + ": another name of a file already read");
      continue;
    }
    files.push_back(std::move(found.path));
  }
  return files;
}

}  // namespace ddx::formats
