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
    if (!bytes.empty() && rest_.ends_with('\r')) {  // "\r\n" in two pieces, or a line that ended with "\r"
      const bool both = bytes.front() == '\n';
      rest_.pop_back();
      give({rest_, both ? '\n' : '\r'});
      rest_.clear();
      if (both) bytes.remove_prefix(1);
    }
    while (!bytes.empty()) {
      const std::size_t end = bytes.find_first_of("\r\n");
      const bool open = end == std::string_view::npos || (bytes[end] == '\r' && end + 1 == bytes.size());
      if (open) {
        rest_.append(bytes);
        break;
      }
      const bool both = bytes[end] == '\r' && bytes[end + 1] == '\n';
      rest_.append(bytes.substr(0, end));
      give({rest_, both ? '\n' : bytes[end]});
      rest_.clear();
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
  std::string rest_;
};

}  // namespace ddx::live
