// Error: "this cannot go on". It names the file, the place in it and what was expected there. Thrown by readers and by
// the command line; caught where a file can be skipped (the loader) and in cli/main.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace ddx {

// Where in a file something is: a byte offset for binary formats, a line (from 1) for text.
struct Place {
  std::optional<std::uint64_t> offset;
  std::optional<std::uint64_t> line;
};

class Error : public std::runtime_error {
 public:
  Error(std::string path, Place place, const std::string& message)
      : std::runtime_error(text(path, place, message)), path_(std::move(path)), place_(place), message_(message) {}
  explicit Error(const std::string& message) : std::runtime_error(message), message_(message) {}

  const std::string& path() const { return path_; }
  const Place& place() const { return place_; }
  // Without the path, for where that stands beside it: "line 3: expected ...", "at byte 7: expected ...".
  std::string without_path() const {
    if (place_.line) return "line " + std::to_string(*place_.line) + ": " + message_;
    if (place_.offset) return "at byte " + std::to_string(*place_.offset) + ": " + message_;
    return message_;
  }

 private:
  static std::string text(const std::string& path, const Place& place, const std::string& message) {
    std::string where = path;
    if (place.line) where += ":" + std::to_string(*place.line);
    if (place.offset) where += " at byte " + std::to_string(*place.offset);
    return where.empty() ? message : where + ": " + message;
  }

  std::string path_;
  Place place_;
  std::string message_;
};

// What was asked for cannot be done, however good the evidence is: the mistake of whoever asked.
class RequestError : public Error {
 public:
  using Error::Error;
};

}  // namespace ddx
