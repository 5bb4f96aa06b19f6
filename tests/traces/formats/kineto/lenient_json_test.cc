#include "traces/formats/lenient_json.h"

#include <gtest/gtest.h>

namespace ddx::formats {
namespace {

TEST(LenientJson, mends_what_is_no_json_and_nothing_else) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"a": NaN, "b": -Infinity, "c": Infinity})", R"({"a": null, "b": null, "c": null})"},
      {R"([1, 2, ])", R"([1, 2 ])"},
      {R"({"a": 1,})", R"({"a": 1})"},
      {R"({"a": "C:\dir\new"})", R"({"a": "C:\\dir\new"})"},
      {R"(["\u00e9", "\u12", "\"", "\\"])", R"(["\u00e9", "\\u12", "\"", "\\"])"},
      {"[\"a\nb\"]", "[\"a b\"]"},
      {"[\"\xff\"]", "[\"\xEF\xBF\xBD\"]"},
      {R"(["NaN", ",]", "Infinity"])", R"(["NaN", ",]", "Infinity"])"},
      {R"([-1, null, {"n": 2}])", R"([-1, null, {"n": 2}])"},
  };
  for (const auto& [text, mended] : cases) {
    const MendedJson out = mend_json(text);
    EXPECT_EQ(out.text, mended);
    EXPECT_EQ(out.mends == 0, text == mended);
  }
}

}  // namespace
}  // namespace ddx::formats
