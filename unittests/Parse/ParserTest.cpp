// fagen: tests of the parser that want the tree: precedence of expressions, choices of tune.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Parse/Parser.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

using namespace fagen;

namespace {

std::string show(const ast::Expr &expr) {
  switch (expr.kind) {
  case ast::Expr::Integer:
    return std::to_string(expr.integer);
  case ast::Expr::Decimal:
    return "decimal";
  case ast::Expr::Variable:
    return expr.name;
  default:
    std::string text = "(" + expr.name;
    for (const auto &operand : expr.operands)
      text += " " + show(*operand);
    return text + ")";
  }
}

struct Parsed {
  llvm::SourceMgr sources;
  std::string messages;
  ast::File file;

  explicit Parsed(const std::string &text) {
    unsigned id = sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, "t.fa"), llvm::SMLoc());
    llvm::raw_string_ostream os(messages);
    Diagnostics diags(sources, os);
    file = parseSpec(sources.getMemoryBuffer(id)->getBuffer(), diags);
  }
};

std::string parseCondition(const std::string &text) {
  Parsed parsed("kernel k { select { when " + text + " : a; } }");
  if (!parsed.messages.empty())
    return "error";
  return show(*parsed.file.kernels[0].selects[0].lines[0].condition);
}

/// The choices of a value, as "64x32 64x64".
std::string parseChoices(const std::string &text) {
  Parsed parsed("kernel k { schedule { tile = " + text + "; } }");
  if (!parsed.messages.empty())
    return "error";
  std::string result;
  for (const ast::Plain &plain : parsed.file.kernels[0].schedules[0].body[0].setting->value.items[0].choices) {
    result += result.empty() ? "" : " ";
    for (size_t i = 0; i != plain.numbers.size(); ++i)
      result += (i == 0 ? "" : "x") + std::to_string(plain.numbers[i]);
  }
  return result;
}

TEST(Parser, Precedence) {
  EXPECT_EQ(parseCondition("a + b * c"), "(+ a (* b c))");
  EXPECT_EQ(parseCondition("a - b - c"), "(- (- a b) c)");
  EXPECT_EQ(parseCondition("a < b == c > d"), "(== (< a b) (> c d))");
  EXPECT_EQ(parseCondition("a || b && c == d + e % f"), "(|| a (&& b (== c (+ d (% e f)))))");
  EXPECT_EQ(parseCondition("!a && -b < c"), "(&& (! a) (< (- b) c))");
  EXPECT_EQ(parseCondition("(a + b) * 2 KiB"), "(* (+ a b) 2048)");
  EXPECT_EQ(parseCondition("ceil_div(a, b + 1) / 3"), "(/ (ceil_div a (+ b 1)) 3)");
  EXPECT_EQ(parseCondition("a +"), "error");
  EXPECT_EQ(parseCondition("a b"), "error");
  EXPECT_EQ(parseCondition("(a"), "error");
}

TEST(Parser, Tune) {
  EXPECT_EQ(parseChoices("64 x 32"), "64x32");
  EXPECT_EQ(parseChoices("64 x tune(32, 64)"), "64x32 64x64");
  EXPECT_EQ(parseChoices("tune(16, 64) x tune(32, 64)"), "16x32 16x64 64x32 64x64");
  EXPECT_EQ(parseChoices("tune(16 x 32, 64 x tune(1, 2))"), "16x32 64x1 64x2");
  EXPECT_EQ(parseChoices("tune(16 x 32) x 2"), "error");
  EXPECT_EQ(parseChoices("tune()"), "error");
}

TEST(Parser, KeepsAccountOfWhatItSkips) {
  auto lostOf = [](llvm::StringRef body) {
    Parsed parsed(("kernel k { schedule { " + body + " }").str());
    const ast::Lost &lost = parsed.file.kernels[0].schedules[0].lost;
    return llvm::join(lost.keys, " ") + (lost.mayBeAny ? " *" : "");
  };
  EXPECT_EQ(lostOf("a = 1; }"), "");
  EXPECT_EQ(lostOf("a = tune(1, 2; b = 1; }"), "a");
  EXPECT_EQ(lostOf("a = 1 b = 2; }"), "a b");
  EXPECT_EQ(lostOf("when x + { a = 1; when y { b = 2; } } }"), "a b");
  EXPECT_EQ(lostOf("when x { a = ; } }"), "");
  EXPECT_EQ(lostOf("64 = a; }"), " *");
  EXPECT_EQ(lostOf("a = 1; when x { b = 1; }"), " *");
}

TEST(Parser, RecoversInsideOneStatement) {
  Parsed parsed("kernel k { schedule { a = ; b = { x; } ; c = 1; } schedule s { d = 2; } }");
  ASSERT_EQ(parsed.file.kernels.size(), 1u);
  ASSERT_EQ(parsed.file.kernels[0].schedules.size(), 2u);
  const ast::Lost &lost = parsed.file.kernels[0].schedules[0].lost;
  EXPECT_EQ(lost.keys, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(lost.mayBeAny);
  EXPECT_TRUE(parsed.file.kernels[0].schedules[1].lost.keys.empty());
  EXPECT_EQ(parsed.file.kernels[0].schedules[1].body[0].setting->key.text, "d");
}

} // namespace
