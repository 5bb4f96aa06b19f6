#include "base/printable.h"

#include <gtest/gtest.h>

namespace ddx {
namespace {

TEST(Printable, keeps_text_and_takes_away_what_moves_the_screen) {
  struct Case {
    std::string_view given, shown;
  };
  const std::string_view nul("a\0b", 3);
  for (const Case& each :
       {Case{"plain text", "plain text"},
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x99\x82", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x99\x82"},
        {"a\nb\tc", "a b c"},
        {nul, "ab"},
        {"\x1b[31mred\x1b[0m", "red"},
        {"\x1b]0;title\x07rest", "rest"},
        {"\x1b]8;;http://x\x1b\\link", "link"},
        {"\x1b[31", ""},
        {"\x1b]never ended\nnext", " next"},
        {"\x1b", ""},
        {"right\xe2\x80\xaeleft", "rightleft"},
        {"\xef\xbb\xbfmark", "mark"},
        {"\xc2\x9b"
         "31m",
         "31m"},
        {"cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd"},
        {"over\xc0\xaflong", "over\xef\xbf\xbd\xef\xbf\xbdlong"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xff", "\xef\xbf\xbd"}}) {
    EXPECT_EQ(printable_text(each.given), each.shown);
    EXPECT_EQ(printable_text(each.shown), each.shown) << "what is safe stays";
  }
}

TEST(Printable, cuts_between_characters) {
  EXPECT_EQ(printable_text("abcdef", 3), "abc");
  EXPECT_EQ(printable_text("ab\xe2\x82\xac"
                           "c",
                           4),
            "ab");
  EXPECT_EQ(printable_text("ab\xe2\x82\xac"
                           "c",
                           5),
            "ab\xe2\x82\xac");
}

TEST(Printable, tells_plain_text) {
  EXPECT_TRUE(is_plain_ascii("/opt/a b.py ~"));
  EXPECT_TRUE(is_plain_ascii(""));
  for (const char* text : {"a\n", "\x1b[m", "\x7f", "\xc3\xbc"}) EXPECT_FALSE(is_plain_ascii(text));
}

TEST(Printable, decodes_what_it_encodes) {
  for (const char32_t value : {U'a', U'\u00fc', U'\u20ac', U'\U0001f642', U'\U0010ffff'}) {
    std::string text = "x";
    append_utf8(text, value);
    EXPECT_EQ(code_point_at(text, 1).value, value);
    EXPECT_EQ(code_point_at(text, 1).length, text.size() - 1);
  }
}

}  // namespace
}  // namespace ddx
