// What is said of a file whose reader gave up.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "traces/formats/loader.h"

namespace ddx::formats {
namespace {

Sniff any(const std::string&, std::string_view) { return Sniff::sure; }

void refuse(const Source& source, const ImportOptions&, Evidence&) {
  if (source.bytes == "line") throw Error(source.path, Place{.offset = {}, .line = 3}, "expected a rank");
  if (source.bytes == "byte") throw Error(source.path, Place{.offset = 7, .line = {}}, "expected a rank");
  throw Error(source.path, {}, "expected a rank");
}

// The report prints the path in front of it.
TEST(FailedFile, TheNoteSaysThePlaceAndNotThePathAgain) {
  const std::string name = "ddx_failed_file_" + std::to_string(::getpid());
  const std::string path = (std::filesystem::temp_directory_path() / name).string();
  const std::vector<Importer> formats{{"refusing", "a test's own", any, refuse}};
  LoadOptions options;
  options.formats = &formats;
  for (const auto& [text, note] :
       {std::pair{"line", "line 3: expected a rank"}, std::pair{"byte", "at byte 7: expected a rank"},
        std::pair{"none", "expected a rank"}}) {
    std::ofstream(path) << text;
    const Evidence evidence = load({path}, options);
    std::filesystem::remove(path);
    ASSERT_EQ(evidence.inputs.size(), 1U);
    EXPECT_EQ(evidence.inputs[0].note, note);
    EXPECT_EQ(evidence.diagnostics.entries().at(0).detail, path + ": " + note);
  }
}

}  // namespace
}  // namespace ddx::formats
