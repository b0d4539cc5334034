// fagen: tests of the lexer: what touches a number, comments, and what is no token.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Parse/Lexer.h"

#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

using namespace fagen;

namespace {

/// Tokens of a text, with blanks between them; reported ones as `?`; then `!` and the number of errors if there are
/// any.
std::string lex(llvm::StringRef text) {
  llvm::SourceMgr sources;
  unsigned id = sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(text, "t.fa"), llvm::SMLoc());
  std::string messages, result;
  llvm::raw_string_ostream os(messages);
  Diagnostics diags(sources, os);
  Lexer lexer(sources.getMemoryBuffer(id)->getBuffer(), diags);
  for (Token token = lexer.next(); token.kind != Token::End; token = lexer.next())
    result += (result.empty() ? "" : " ") + (token.kind == Token::Reported ? "?" : token.text.str());
  return result + (diags.hasErrors() ? " !" + std::to_string(diags.errorCount()) : "");
}

TEST(Lexer, NumbersWithDimsAndUnits) {
  EXPECT_EQ(lex("16x16"), "16 x 16");
  EXPECT_EQ(lex("16 x 16"), "16 x 16");
  EXPECT_EQ(lex("16x16x4"), "16 x 16 x 4");
  EXPECT_EQ(lex("99KiB 16B 16 B"), "99 KiB 16 B 16 B");
  EXPECT_EQ(lex("0.95*sdpa"), "0.95 * sdpa");
  EXPECT_EQ(lex("x16"), "x16"); // no number before it: a name
}

TEST(Lexer, OneErrorForWhateverElseTouchesANumber) {
  EXPECT_EQ(lex("16y"), "? !1");
  EXPECT_EQ(lex("16x"), "? !1");
  EXPECT_EQ(lex("16xy3 4"), "? 4 !1");
  EXPECT_EQ(lex("16MiB"), "? !1");
  EXPECT_EQ(lex("2147483648"), "? !1");
  EXPECT_EQ(lex("99999999999999999999999"), "? !1");
  EXPECT_EQ(lex("2147483647"), "2147483647");
}

TEST(Lexer, Comments) {
  EXPECT_EQ(lex("a // b\nc /* d\n */ e"), "a c e");
  EXPECT_EQ(lex("a//"), "a");
  EXPECT_EQ(lex("a /* b"), "a !1");
  EXPECT_EQ(lex("a /*/ b"), "a !1");
}

TEST(Lexer, Operators) {
  EXPECT_EQ(lex("a<=b==c!=d&&e||!f"), "a <= b == c != d && e || ! f");
  EXPECT_EQ(lex("<=="), "<= =");
}

TEST(Lexer, UnknownCharactersAreOneErrorARun) {
  EXPECT_EQ(lex("a @@@ b $ c"), "a b c !2");
  EXPECT_EQ(lex(llvm::StringRef("a\0b", 3)), "a b !1");
  EXPECT_EQ(lex("a \xc3\xa4 b"), "a b !1");
}

} // namespace
