// fagen: messages about long lines show what stands around the caret; messages that quote long words are cut.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Support/Diagnostics.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

using namespace fagen;
using namespace llvm;

namespace {

/// What is printed of a mistake at `length` bytes from `at` on.
std::string printed(StringRef text, size_t at, size_t length, const Twine &message = "wrong",
                    ArrayRef<SMFixIt> fixes = {}) {
  SourceMgr sources;
  const unsigned id = sources.AddNewSourceBuffer(MemoryBuffer::getMemBufferCopy(text, "k.fa"), SMLoc());
  std::string out;
  raw_string_ostream os(out);
  Diagnostics diags(sources, os);
  const char *begin = sources.getMemoryBuffer(id)->getBufferStart() + at;
  diags.error(SMRange(SMLoc::getFromPointer(begin), SMLoc::getFromPointer(begin + length)), message, fixes);
  return out;
}

const std::string kLong = std::string(500, 'a') + "WORD" + std::string(500, 'b');

TEST(LongLines, ShowWhatStandsAroundTheCaret) {
  EXPECT_EQ(printed(kLong, 500, 4), "k.fa:1:501: error: wrong\n..." + std::string(77, 'a') + "WORD" +
                                        std::string(73, 'b') + "...\n" + std::string(80, ' ') + "^~~~\n");
  EXPECT_EQ(printed(kLong, 0, 2), "k.fa:1:1: error: wrong\n" + std::string(157, 'a') + "...\n^~\n");
  EXPECT_EQ(printed(kLong, 1002, 2),
            "k.fa:1:1003: error: wrong\n..." + std::string(157, 'b') + "\n" + std::string(158, ' ') + "^~\n");
  EXPECT_EQ(printed(std::string(160, 'a'), 159, 1),
            "k.fa:1:160: error: wrong\n" + std::string(160, 'a') + "\n" + std::string(159, ' ') + "^\n");
}

TEST(LongLines, RangesEndWithWhatIsShown) {
  EXPECT_EQ(printed(kLong, 500, 400), "k.fa:1:501: error: wrong\n..." + std::string(77, 'a') + "WORD" +
                                          std::string(73, 'b') + "...\n" + std::string(80, ' ') + "^" +
                                          std::string(79, '~') + "\n");
}

/// Whatever the bytes are, each place of the line can be shown.
TEST(LongLines, NeedNotBeUtf8) {
  for (const char *piece : {"\x80", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xff", "\t"}) {
    std::string line;
    while (line.size() < 400)
      line += piece;
    for (size_t at = 0; at < line.size(); ++at)
      EXPECT_TRUE(StringRef(printed(line, at, 1)).starts_with(("k.fa:1:" + Twine(at + 1) + ": error: wrong\n").str()));
  }
}

TEST(LongLines, OfMessagesAreCut) {
  const std::string word(100000, 'x');
  const std::string out = printed("a", 0, 1, "unknown '" + word + "'; the end");
  EXPECT_LT(out.size(), 1100u);
  EXPECT_NE(out.find("error: unknown 'xxx"), std::string::npos);
  EXPECT_NE(out.find("xxx...xxx"), std::string::npos);
  EXPECT_NE(out.find("x'; the end\n"), std::string::npos);
  const std::string lines = join(std::vector<std::string>(100, "a line of many"), "\n"); // as nvcc's words
  EXPECT_NE(printed("a", 0, 1, lines).find(lines), std::string::npos);
}

/// In whatever order places are asked for.
TEST(LongLines, PlacesAreThoseOfTheSource) {
  const std::string text = "one\n\ntwo three\r\nfour\n" + kLong + "\nend";
  SourceMgr sources;
  const unsigned id = sources.AddNewSourceBuffer(MemoryBuffer::getMemBufferCopy(text, "k.fa"), SMLoc());
  Diagnostics diags(sources, llvm::nulls());
  const char *begin = sources.getMemoryBuffer(id)->getBufferStart();
  for (size_t step : {1, 7, 501})
    for (size_t i = 0, at = 0; i <= text.size(); ++i, at = (at + step) % (text.size() + 1)) {
      const SMLoc place = SMLoc::getFromPointer(begin + at);
      const auto [line, column] = sources.getLineAndColumn(place, id);
      EXPECT_EQ(diags.locate(place).line, line) << at;
      EXPECT_EQ(diags.locate(place).column, column) << at;
    }
}

TEST(LongLines, MessagesAndNotesAreLimited) {
  SourceMgr sources;
  std::string out;
  raw_string_ostream os(out);
  Diagnostics diags(sources, os);
  for (int i = 0; i < 30; ++i)
    diags.warning(Location(), "warned " + Twine(i));
  for (int i = 0; i < 30; ++i)
    diags.error(Location(), "mistake " + Twine(i));
  EXPECT_EQ(diags.errorCount(), 30u);
  EXPECT_EQ(StringRef(out).count("warned"), 20u);
  EXPECT_EQ(StringRef(out).count("mistake"), 20u);
  EXPECT_EQ(StringRef(out).count("more than 20 warnings; the others are not shown"), 1u);
  EXPECT_EQ(StringRef(out).count("more than 20 errors; the others are not shown"), 1u);
  Diagnostics fresh(sources, os);
  fresh.error(Location(), "with notes");
  for (int i = 0; i < 30; ++i)
    fresh.note(Location(), "noted " + Twine(i));
  EXPECT_EQ(StringRef(out).count("noted"), 20u);
  EXPECT_EQ(StringRef(out).count("more than 20 notes; the others are not shown"), 1u);
}

} // namespace
