#include "tests/cli/well_formed.h"

#include <cctype>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/report/printable.h"

namespace ddx::cli {
namespace {

struct XmlProblem {
  std::string what;
};

class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : text_(text) {}

  void document() {
    const std::string_view declaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    if (!text_.starts_with(declaration)) fail("no declaration");
    characters();
    at_ = declaration.size();
    do {
      tag();
      while (!open_.empty() && at_ < text_.size() && text_[at_] != '<') character('<');
    } while (!open_.empty());
    if (text_.substr(at_) != "\n") fail("something behind the root element");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw XmlProblem{what + " at byte " + std::to_string(at_)}; }

  // Every code point must be one that XML 1.0 allows.
  void characters() {
    for (; at_ < text_.size();) {
      const CodePoint point = code_point_at(text_, at_);
      const bool invalid = point.value == 0xfffd && text_.substr(at_, 3) != "\xef\xbf\xbd";
      const bool control = point.value < 0x20 && point.value != '\t' && point.value != '\n' && point.value != '\r';
      if (invalid || control || point.value == 0xfffe || point.value == 0xffff) fail("forbidden character");
      at_ += point.length;
    }
    at_ = 0;
  }

  char next() {
    if (at_ >= text_.size()) fail("unexpected end");
    return text_[at_++];
  }

  void character(char forbidden) {
    const char c = next();
    if (c == '<' || c == forbidden) fail("bare markup");
    if (c != '&') return;
    const std::size_t end = text_.find(';', at_);
    if (end == std::string_view::npos) fail("open entity");
    static const std::set<std::string_view> kEntities{"amp", "lt", "gt", "quot", "apos", "#13", "#10", "#9"};
    if (!kEntities.contains(text_.substr(at_, end - at_))) fail("unknown entity");
    at_ = end + 1;
  }

  std::string name() {
    std::string out;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '-')) {
      out += text_[at_++];
    }
    if (out.empty()) fail("no name");
    return out;
  }

  void tag() {
    if (next() != '<') fail("no tag");
    if (text_.substr(at_).starts_with("/")) {
      ++at_;
      if (open_.empty() || name() != open_.back()) fail("wrong end tag");
      open_.pop_back();
      if (next() != '>') fail("open end tag");
      return;
    }
    open_.push_back(name());
    std::set<std::string> attributes;
    while (next() == ' ') {
      if (!attributes.insert(name()).second) fail("attribute twice");
      if (next() != '=' || next() != '"') fail("no value");
      while (at_ < text_.size() && text_[at_] != '"') character('\n');
      next();
    }
    --at_;
    const char c = next();
    if (c == '>') return;
    if (c != '/' || next() != '>') fail("open tag");
    open_.pop_back();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string> open_;
};

}  // namespace

std::string xml_problem(std::string_view text) {
  try {
    XmlReader(text).document();
    return "";
  } catch (const XmlProblem& problem) {
    return problem.what;
  }
}

std::string workflow_command(const std::string& text) {
  // Of Unicode's white space that hostile_strings() uses, std::regex sees but the ASCII part.
  static const std::regex kCommand("^(\\s|\xe3\x80\x80)*(::|##\\[)");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line.substr(0, 400), kCommand) || line.find("##[") != std::string::npos) return line;
  }
  return {};
}

}  // namespace ddx::cli
