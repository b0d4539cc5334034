// fagen: tests of suggestions, the indented stream, diagnostics and transactional output.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Support/Diagnostics.h"
#include "fagen/Support/IndentedStream.h"
#include "fagen/Support/OutputSet.h"
#include "fagen/Support/Suggest.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

#include "gtest/gtest.h"

using namespace fagen;

namespace {

TEST(Suggest, NearestWithinAThird) {
  EXPECT_EQ(nearestWord("mma_snyc", {"scalar", "mma_sync", "wgmma"}), "mma_sync");
  EXPECT_EQ(nearestWord("sliding", {"none", "causal"}), "");
  EXPECT_EQ(nearestWord("ab", {"cb", "ac"}), "cb"); // the first of equals
  EXPECT_EQ(nearestWord("abc", {"abd", "abc"}), "abc");
  EXPECT_EQ(nearestWord("j", {"b", "k", "hk"}), ""); // every letter is one replacement away
  EXPECT_EQ(nearestWord("K", {"b", "k"}), "k");
  EXPECT_EQ(nearestWord("qq", {"q"}), "");
}

TEST(Suggest, Alternatives) {
  EXPECT_EQ(alternatives({"a"}), "a");
  EXPECT_EQ(alternatives({"a", "b", "c"}), "a, b or c");
}

TEST(IndentedStream, IndentsLinesAndLeavesEmptyOnesEmpty) {
  std::string text;
  llvm::raw_string_ostream out(text);
  IndentedStream os(out);
  EXPECT_EQ(os.getLine(), 1u);
  os << "if {\n";
  {
    auto scope = os.scope();
    os << "a" << 1 << ";\n\nb;\n";
  }
  EXPECT_EQ(os.getLine(), 5u);
  os << "}\n";
  os.flush();
  EXPECT_EQ(text, "if {\n  a1;\n\n  b;\n}\n");
}

static std::string broken(llvm::StringRef text) {
  std::string result;
  {
    llvm::raw_string_ostream out(result);
    IndentedStream os(out, 2, 24);
    auto scope = os.scope();
    os << text;
  }
  return result;
}

TEST(IndentedStream, BreaksLongLines) {
  EXPECT_EQ(broken("call(a, b);\n"), "  call(a, b);\n");
  EXPECT_EQ(broken("call(first(a, b), second(c));\n"), "  call(first(a, b),\n      second(c));\n"); // the outer comma
  EXPECT_EQ(broken("const int x = 1; // one, as it is\n"), "  // one, as it is\n  const int x = 1;\n");
  EXPECT_EQ(broken("/// What a reader wants to know.\n"), "  /// What a reader\n  /// wants to know.\n");
  EXPECT_EQ(broken("f(\"a, b, c, d, e, f, g, h, i\");\n"), "  f(\"a, b, c, d, e, f, g, h, i\");\n"); // no comma of code
  EXPECT_EQ(broken("a_word_that_has_no_place_to_break\n\nb\n"), "  a_word_that_has_no_place_to_break\n\n  b\n");
}

TEST(IndentedStream, CountsBrokenLines) {
  std::string text;
  llvm::raw_string_ostream out(text);
  IndentedStream os(out, 2, 20);
  os << "call(argument, another);\n";
  EXPECT_EQ(os.getLine(), 3u);
}

struct Printed {
  llvm::SourceMgr sources;
  std::string text;
  llvm::raw_string_ostream os{text};
  Diagnostics diags{sources, os};
  llvm::SMRange at(unsigned offset, unsigned length) {
    if (sources.getNumBuffers() == 0)
      sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer("one two\nthree\n", "dir/t.fa"), llvm::SMLoc());
    const char *begin = sources.getMemoryBuffer(1)->getBufferStart() + offset;
    return {llvm::SMLoc::getFromPointer(begin), llvm::SMLoc::getFromPointer(begin + length)};
  }
};

TEST(Diagnostics, Caret) {
  Printed printed;
  printed.diags.error(printed.at(4, 3), "no two");
  EXPECT_EQ(printed.text, "dir/t.fa:1:5: error: no two\none two\n    ^~~\n");
  EXPECT_EQ(printed.diags.locate(printed.at(8, 1).Start).str(), "t.fa:2");
}

TEST(Diagnostics, SortedWithTheirNotes) {
  Printed printed;
  {
    Diagnostics::Sorted sorted(printed.diags);
    printed.diags.error(printed.at(8, 5), "later");
    printed.diags.note(printed.at(0, 3), "of later");
    printed.diags.error(printed.at(0, 3), "first");
    EXPECT_EQ(printed.text, "");
  }
  size_t first = printed.text.find("error: first"), later = printed.text.find("error: later");
  EXPECT_LT(first, later);
  EXPECT_LT(later, printed.text.find("note: of later"));
}

TEST(Diagnostics, LocationsWithoutBuffer) {
  Printed printed;
  printed.diags.error(Location{"x.fa", 7, 0, {}}, "gone");
  printed.diags.error(Location(), "nowhere");
  EXPECT_EQ(printed.text, "x.fa:7: error: gone\nfagen: error: nowhere\n");
}

TEST(Diagnostics, JsonHasNotesInside) {
  Printed printed;
  printed.diags.setFormat(DiagnosticsFormat::Json);
  printed.diags.error(printed.at(4, 3), "no \"two\"");
  printed.diags.note(printed.at(0, 3), "one is there");
  EXPECT_EQ(printed.text, ""); // another note may follow
  printed.diags.warning(Location{"x.fa", 7, 2, {}}, "gone");
  printed.diags.finish();
  EXPECT_EQ(
      printed.text,
      R"({"column":5,"endColumn":8,"endLine":1,"file":"dir/t.fa","line":1,"message":"no \"two\"","notes":[{)"
      R"("column":1,"endColumn":4,"endLine":1,"file":"dir/t.fa","line":1,"message":"one is there","severity":"note"})"
      R"(],"severity":"error"})"
      "\n"
      R"({"column":2,"file":"x.fa","line":7,"message":"gone","notes":[],"severity":"warning"})"
      "\n");
}

TEST(Diagnostics, JsonIsSortedAndLimited) {
  Printed printed;
  printed.diags.setFormat(DiagnosticsFormat::Json);
  {
    Diagnostics::Sorted sorted(printed.diags);
    for (unsigned i = 0; i != Diagnostics::kErrorLimit + 5; ++i)
      printed.diags.error(printed.at(8, 1), "later");
    printed.diags.error(printed.at(0, 1), "first");
  }
  printed.diags.finish();
  EXPECT_TRUE(llvm::StringRef(printed.text).starts_with(R"({"column":1,"endColumn":2,)"));
  EXPECT_EQ(llvm::StringRef(printed.text).count('\n'), Diagnostics::kErrorLimit + 1);
  EXPECT_TRUE(llvm::StringRef(printed.text).contains("more than 20 errors"));
}

TEST(Diagnostics, LimitCountsAndNotesDisappearWithTheirError) {
  Printed printed;
  for (unsigned i = 0; i != Diagnostics::kErrorLimit + 5; ++i) {
    printed.diags.error(Location(), "e");
    printed.diags.note(Location(), "n");
  }
  EXPECT_EQ(printed.diags.errorCount(), Diagnostics::kErrorLimit + 5);
  size_t notes = 0;
  for (size_t at = printed.text.find("note:"); at != std::string::npos; at = printed.text.find("note:", at + 1))
    ++notes;
  EXPECT_EQ(notes, Diagnostics::kErrorLimit);
}

/// A directory of the test's own, with what is in it.
class OutputSetTest : public testing::Test {
protected:
  void SetUp() override { ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("fagen-output", directory)); }
  void TearDown() override { llvm::sys::fs::remove_directories(directory); }

  std::string place(const char *name) const { return (directory + "/" + name).str(); }
  /// A set with a manifest.
  OutputSet set(const char *finished) const {
    OutputSet files;
    files.setManifest(place("manifest"), finished, "unfinished");
    return files;
  }
  unsigned entries() const {
    unsigned count = 0;
    std::error_code code;
    for (llvm::sys::fs::directory_iterator it(directory, code), end; it != end && !code; it.increment(code))
      ++count;
    return count;
  }

  llvm::SmallString<128> directory;
};

TEST_F(OutputSetTest, AllOrNothing) {
  OutputSet good = set("1");
  good.add(place("a/b.txt"), "text");
  good.add(place("c.txt"), "more");
  EXPECT_EQ(commit(good), "");
  EXPECT_EQ(readFile(place("a/b.txt")), "text");
  EXPECT_EQ(readFile(place("manifest")), "1");

  OutputSet bad = set("2"); // its second file would lie below a file
  bad.add(place("c.txt"), "changed");
  bad.add(place("c.txt/d.txt"), "no");
  bad.remove(place("a/b.txt"));
  EXPECT_EQ(commit(bad), "cannot write '" + place("c.txt/d.txt") + "': Not a directory");
  EXPECT_EQ(readFile(place("c.txt")), "more");
  EXPECT_EQ(readFile(place("a/b.txt")), "text");
  EXPECT_EQ(readFile(place("manifest")), "1");
  EXPECT_EQ(entries(), 3u); // no temporary file is left
}

TEST_F(OutputSetTest, ManifestSaysUnfinishedUntilAllIsDone) {
  OutputSet first = set("1");
  first.add(place("a"), "old");
  first.add(place("gone/file"), "");
  EXPECT_EQ(commit(first), "");

  OutputSet second = set("2");
  second.add(place("a"), "new");
  second.remove(place("gone")); // cannot be done: it is a directory with a file, so the run ends in the middle
  EXPECT_NE(commit(second), "");
  EXPECT_EQ(readFile(place("a")), "new");
  EXPECT_EQ(readFile(place("manifest")), "unfinished");
  EXPECT_EQ(entries(), 3u);

  OutputSet third = set("2"); // has nothing to write but the manifest
  third.add(place("a"), "new");
  EXPECT_EQ(commit(third), "");
  EXPECT_EQ(readFile(place("manifest")), "2");
}

TEST_F(OutputSetTest, SetsThatDoNotChangeAreLeftAlone) {
  OutputSet files = set("1");
  files.add(place("a"), "text");
  EXPECT_EQ(commit(files), "");
  llvm::sys::fs::file_status before, after;
  ASSERT_FALSE(llvm::sys::fs::status(place("manifest"), before));
  OutputSet other;
  other.setManifest(place("other/manifest"), "1", "unfinished");
  EXPECT_EQ(commit({files, other}), "");
  ASSERT_FALSE(llvm::sys::fs::status(place("manifest"), after));
  EXPECT_EQ(before.getUniqueID(), after.getUniqueID());
  EXPECT_EQ(readFile(place("other/manifest")), "1");
}

} // namespace
