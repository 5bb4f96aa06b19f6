#include "live/launch/line_splitter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ddx::live {
namespace {

using Lines = std::vector<std::pair<std::string, char>>;

Lines split(const std::vector<std::string>& pieces) {
  Lines lines;
  LineSplitter splitter;
  const auto give = [&lines](const Line& line) { lines.emplace_back(line.text, line.end); };
  for (const std::string& piece : pieces) splitter.feed(piece, give);
  splitter.finish(give);
  return lines;
}

TEST(LineSplitter, KeepsLinesTogetherWhereverTheirBytesAreCut) {
  const std::string text = "one\ntwo\r\nbar 1\rbar 2\r\n\nthree";
  const Lines whole = {{"one", '\n'}, {"two", '\n'}, {"bar 1", '\r'}, {"bar 2", '\n'}, {"", '\n'}, {"three", '\0'}};
  for (std::size_t a = 0; a <= text.size(); ++a) {
    for (std::size_t b = a; b <= text.size(); ++b) {
      EXPECT_EQ(split({text.substr(0, a), text.substr(a, b - a), text.substr(b)}), whole) << a << ' ' << b;
    }
  }
}

TEST(LineSplitter, GivesALineWithoutEndInPieces) {
  const std::string text(3 * LineSplitter::kLongest, 'x');
  std::string all;
  for (const auto& [piece, end] : split({text + "\n"})) {
    EXPECT_LE(piece.size(), text.size());
    all += piece;
  }
  EXPECT_EQ(all, text);
}

TEST(LineSplitter, ALoneReturnAtTheEndIsALine) {
  EXPECT_EQ(split({"50%\r"}), (Lines{{"50%", '\r'}}));
  EXPECT_EQ(split({"50%\r", "60%\n"}), (Lines{{"50%", '\r'}, {"60%", '\n'}}));
}

}  // namespace
}  // namespace ddx::live
