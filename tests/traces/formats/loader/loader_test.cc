#include "traces/formats/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <new>
#include <thread>

#include "base/error.h"
#include "tests/support/scratch_folder.h"

namespace ddx::formats {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Folder = ddx::testing::ScratchFolder;

// "slow" files take long, "bad" ones are refused, "huge" ones want too much memory; all others give one log event whose
// text is the file's.
void read_note(const Source& source, const ImportOptions&, Evidence& out) {
  if (source.bytes.find("slow") != std::string_view::npos) std::this_thread::sleep_for(std::chrono::milliseconds(60));
  out.diagnostics.count("note.read", DiagnosticSeverity::info, source.path);
  LogEvent event;
  event.text = std::string(source.bytes);
  out.events.push_back(event);
  if (source.bytes.find("bad") != std::string_view::npos)
    throw Error(source.path, {.offset = {}, .line = 3}, "expected good");
  if (source.bytes.find("huge") != std::string_view::npos) throw std::bad_alloc();
}

const std::vector<Importer>& notes() {
  static const std::vector<Importer> kNotes{
      {"note", "a test's own",
       [](const std::string&, std::string_view head) { return head.starts_with("note ") ? Sniff::sure : Sniff::no; },
       read_note},
      {"guess", "scores less",
       [](const std::string&, std::string_view head) { return head.starts_with("n") ? Sniff::maybe : Sniff::no; },
       [](const Source&, const ImportOptions&, Evidence&) {}}};
  return kNotes;
}

Evidence load_notes(const std::vector<std::string>& paths, unsigned threads = 4) {
  LoadOptions options;
  options.threads = threads;
  options.formats = &notes();
  return load(paths, options);
}

std::vector<std::string> names_of(const Evidence& evidence, const Folder& folder) {
  std::vector<std::string> names;
  for (const Input& input : evidence.inputs)
    names.push_back(fs::path(input.path).lexically_relative(folder.path()).string());
  return names;
}

std::vector<std::string> texts_of(const Evidence& evidence) {
  std::vector<std::string> texts;
  for (const LogEvent& event : evidence.events) texts.push_back(event.text);
  return texts;
}

TEST(Loader, MergesInOrderOfPathWhateverFinishesFirst) {
  const Folder folder;
  folder.write("a/rank_0", "note slow 0");
  folder.write("a/rank_1", "note 1");
  folder.write("b.log", "note slow b");
  folder.write("c.log", "note c");
  for (unsigned threads : {1U, 2U, 8U}) {
    const Evidence evidence = load_notes({folder.path("c.log"), folder.path()}, threads);
    EXPECT_THAT(names_of(evidence, folder), ElementsAre("a/rank_0", "a/rank_1", "b.log", "c.log"));
    EXPECT_THAT(texts_of(evidence), ElementsAre("note slow 0", "note 1", "note slow b", "note c"));
    EXPECT_EQ(evidence.events[2].input, InputId(2)) << "events point at their own file";
    EXPECT_EQ(evidence.inputs[1].file_rank, RankId(1));
    EXPECT_EQ(evidence.inputs[1].format, "note") << "the higher score reads";
  }
}

TEST(Loader, ManyFilesBehindASlowOneAllArrive) {
  const Folder folder;
  folder.write("000", "note slow");
  for (int i = 1; i < 300; ++i) folder.write(std::to_string(1000 + i), "note " + std::to_string(i));
  std::vector<std::size_t> seen;
  LoadOptions options;
  options.threads = 3;
  options.formats = &notes();
  options.progress = [&](std::size_t done, std::size_t all) {
    EXPECT_EQ(all, 300U);
    seen.push_back(done);
  };
  const Evidence evidence = load({folder.path()}, options);
  ASSERT_EQ(evidence.events.size(), 300U);
  EXPECT_EQ(evidence.events[299].text, "note 299");
  ASSERT_EQ(seen.size(), 300U);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST(Loader, AFileThatItsReaderRefusesCostsItselfAlone) {
  const Folder folder;
  folder.write("1", "note bad");
  folder.write("2", "note huge");
  folder.write("3", "note good");
  const Evidence evidence = load_notes({folder.path()});
  EXPECT_THAT(texts_of(evidence), ElementsAre("note good")) << "half-read evidence is not used";
  EXPECT_TRUE(evidence.inputs[0].unreadable);
  EXPECT_EQ(evidence.inputs[0].format, "note");
  EXPECT_THAT(evidence.inputs[0].note, HasSubstr("expected good"));
  EXPECT_THAT(evidence.inputs[1].note, HasSubstr("memory"));
  EXPECT_FALSE(evidence.inputs[2].unreadable);
  EXPECT_EQ(evidence.diagnostics.count_of("load.failed_file"), 2U);
  EXPECT_EQ(evidence.diagnostics.count_of("note.read"), 3U) << "what a reader counted before it gave up stays";
}

TEST(Loader, WhatIsNoEvidenceIsNamed) {
  const Folder folder;
  folder.write("a.bin", std::string("\x00\x01\x02", 3));
  folder.write("b.gz", "\x1f\x8b\x08");
  folder.write("c.log", "");
  folder.write("d.pt", "PK\x03\x04");
  folder.write(".hidden", "note hidden");
  folder.write(".git/config", "note hidden");
  const Evidence evidence = load_notes({folder.path()});
  EXPECT_THAT(names_of(evidence, folder), ElementsAre("a.bin", "b.gz", "c.log", "d.pt"));
  for (const Input& input : evidence.inputs) EXPECT_EQ(input.format, "unknown") << input.path;
  EXPECT_THAT(evidence.inputs[1].note, HasSubstr("nothing of it can be unpacked"));
  EXPECT_THAT(evidence.inputs[3].note, HasSubstr("unpack it first"));
  EXPECT_EQ(evidence.inputs[2].note, "empty file");
  EXPECT_EQ(evidence.diagnostics.count_of("load.unknown_file"), 1U);
  EXPECT_EQ(evidence.diagnostics.count_of("load.compressed_file"), 2U);
  EXPECT_EQ(evidence.diagnostics.count_of("load.empty_file"), 1U);
  EXPECT_EQ(load_notes({folder.path(".hidden")}).events.size(), 1U) << "a hidden file that is given itself is read";
}

TEST(Loader, APatternThatFindsNoRankIsTold) {
  const Folder folder;
  folder.write("rank_7", "note 7");
  folder.write("worker-b-12", "note 12");
  const auto told = [&folder](const char* pattern) {
    LoadOptions options;
    options.formats = &notes();
    options.import.rank_from = std::regex(pattern);
    return load({folder.path()}, options).diagnostics.count_of("load.rank_from_unmatched");
  };
  EXPECT_EQ(told("foo_(\\d+)$"), 1U);
  EXPECT_EQ(told("worker-(.)-"), 1U) << "found, but no number";
  EXPECT_EQ(told("worker-b-(\\d+)$"), 0U) << "one of the files is enough";
  EXPECT_EQ(load_notes({folder.path()}).diagnostics.count_of("load.rank_from_unmatched"), 0U) << "none was given";
}

TEST(Loader, LinksNeitherLoopNorDouble) {
  const Folder folder;
  folder.write("in/rank_1", "note 1");
  fs::create_directory_symlink(folder.path(), folder.path("in/up"));
  fs::create_symlink(folder.path("in/rank_1"), folder.path("latest"));
  fs::create_symlink(folder.path("nowhere"), folder.path("lost"));
  const Evidence evidence = load_notes({folder.path()});
  EXPECT_THAT(names_of(evidence, folder), ElementsAre("in/rank_1", "lost"));
  EXPECT_TRUE(evidence.inputs[1].unreadable);
  EXPECT_EQ(evidence.diagnostics.count_of("load.same_file"), 1U);
}

TEST(Loader, APathGivenTwiceIsReadOnce) {
  const Folder folder;
  folder.write("rank_1", "note 1");
  const Evidence evidence = load_notes({folder.path() + "/./rank_1", folder.path() + "/", folder.path("rank_1")});
  EXPECT_THAT(names_of(evidence, folder), ElementsAre("rank_1"));
}

TEST(Loader, PipesAreRefusedWithoutWaiting) {
  const Folder folder;
  ASSERT_EQ(::mkfifo(folder.path("rank_0.pipe").c_str(), 0600), 0);
  folder.write("rank_1", "note 1");
  const Evidence evidence = load_notes({folder.path()});
  EXPECT_TRUE(evidence.inputs[0].unreadable);
  EXPECT_THAT(evidence.inputs[0].note, HasSubstr("no regular file"));
  EXPECT_THAT(texts_of(evidence), ElementsAre("note 1"));
}

TEST(Loader, UnreadableFileIsNoted) {
  const Folder folder;
  folder.write("rank_0", "note 0");
  fs::permissions(folder.path("rank_0"), fs::perms::none);
  fs::permissions(folder.path(), static_cast<fs::perms>(0755));
  // Root may read every file: be nobody for a moment.
  constexpr uid_t kNobody = 65534;
  const bool root = ::geteuid() == 0;
  if (root && ::seteuid(kNobody) != 0) GTEST_SKIP() << "root that cannot become nobody reads every file";
  const Evidence evidence = load_notes({folder.path()});
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_TRUE(evidence.inputs[0].unreadable);
  EXPECT_THAT(evidence.inputs[0].note, HasSubstr("ermission"));
  EXPECT_EQ(evidence.diagnostics.count_of("load.unreadable_file"), 1U);
}

TEST(Loader, AMissingPathIsToldAndTheOthersAreRead) {
  const Folder folder;
  const std::string there = folder.path("rank_0.log");
  folder.write("rank_0.log", "note a\n");
  const std::string nowhere = folder.path("no_such_file");
  const Evidence evidence = load_notes({nowhere, there});
  EXPECT_EQ(evidence.events.size(), 1U);
  ASSERT_EQ(evidence.inputs.size(), 2U);
  EXPECT_EQ(evidence.inputs[0].path, nowhere);
  EXPECT_TRUE(evidence.inputs[0].unreadable);
  EXPECT_THAT(evidence.inputs[0].note, HasSubstr("cannot be found"));
  EXPECT_EQ(evidence.diagnostics.count_of("load.unreadable_file"), 1U);
}

TEST(Loader, APathOverALinkIsNotShortened) {
  const Folder folder;
  folder.write("far/deep/x.log", "note far\n");
  folder.write("x.log", "note near\n");
  fs::create_directory_symlink(folder.path("far/deep"), folder.path("link"));
  const std::string given = folder.path("link/../deep/x.log");  // there is no "deep" beside the link
  const Evidence evidence = load_notes({given});
  ASSERT_EQ(evidence.inputs.size(), 1U);
  EXPECT_EQ(evidence.inputs[0].path, given);
  EXPECT_EQ(evidence.events.size(), 1U);
}

TEST(Loader, LargeFilesAreMappedAndWhole) {
  const Folder folder;
  // Above the size from which files are mapped (64 MiB).
  std::string text = "note " + std::string((std::size_t{65} << 20), 'x') + "end";
  folder.write("big.log", text);
  const Evidence evidence = load_notes({folder.path()});
  ASSERT_EQ(evidence.events.size(), 1U);
  EXPECT_EQ(evidence.events[0].text.size(), text.size());
  EXPECT_TRUE(evidence.events[0].text.ends_with("xend"));
}

TEST(Loader, AnEmptyFolderIsEmptyEvidence) {
  const Folder folder;
  const Evidence evidence = load_notes({folder.path()});
  EXPECT_TRUE(evidence.inputs.empty());
  EXPECT_TRUE(evidence.diagnostics.empty());
}

}  // namespace
}  // namespace ddx::formats
