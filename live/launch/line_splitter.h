// LineSplitter: the lines of one stream, as they come in pieces.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace ddx::live {

struct Line {
  std::string_view text;  // without its end
  char end = '\n';        // '\r': what follows is written over it; '\0': it goes on, or was cut
};

class LineSplitter {
 public:
  // A line of more than this is given in pieces.
  static constexpr std::size_t kLongest = 64 << 10;

  void feed(std::string_view bytes, const std::function<void(const Line&)>& give) {
    while (!bytes.empty()) {
      // Of "\r\n" that came in two pieces, the line was given at the first.
      const std::size_t end = bytes.find_first_of("\r\n");
      if (end == std::string_view::npos) {
        rest_.append(bytes);
        break;
      }
      if (bytes[end] == '\r' && end + 1 == bytes.size()) {  // perhaps "\r\n": wait
        rest_.append(bytes);
        break;
      }
      const bool both = bytes[end] == '\r' && bytes[end + 1] == '\n';
      give_line(bytes.substr(0, end), both ? '\n' : bytes[end], give);
      bytes.remove_prefix(end + (both ? 2 : 1));
    }
    while (rest_.size() > kLongest) {
      give({std::string_view(rest_).substr(0, kLongest), '\0'});
      rest_.erase(0, kLongest);
    }
  }

  // The writer is gone.
  void finish(const std::function<void(const Line&)>& give) {
    if (rest_.ends_with('\r')) {
      rest_.pop_back();
      give({rest_, '\r'});
    } else if (!rest_.empty()) {
      give({rest_, '\0'});
    }
    rest_.clear();
  }

  std::string_view rest() const { return rest_; }

 private:
  void give_line(std::string_view head, char end, const std::function<void(const Line&)>& give) {
    if (rest_.ends_with('\r')) {  // it was a whole line after all, unless this is its '\n'
      std::string line = std::move(rest_);
      rest_.clear();
      line.pop_back();
      if (head.empty() && end == '\n') return give({line, '\n'});
      give({line, '\r'});
    }
    if (rest_.empty()) return give({head, end});
    rest_.append(head);
    const std::string line = std::move(rest_);
    rest_.clear();
    give({line, end});
  }

  std::string rest_;
};

}  // namespace ddx::live
