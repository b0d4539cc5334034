// fagen: mutated texts never crash the parser, the verifier or the printer; the seed is printed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestProgram.h"

#include "gtest/gtest.h"

#include <iostream>
#include <random>

using namespace fagen::ir;

namespace {

/// One edit: a byte changed, a piece removed, doubled or moved, or a word of the language put in.
void mutate(std::string &text, std::mt19937_64 &random) {
  static constexpr llvm::StringLiteral kWords[] = {"{",        "}",    "%k",    "loop",  "18446744073709551615",
                                                   "-1",       "\"",   "site ", "[j]",   "none",
                                                   "stages 0", "\\",   "mma ",  "const", "//",
                                                   "(",        "rows", "0"};
  if (text.empty())
    return;
  const size_t at = random() % text.size();
  const size_t length = std::min<size_t>(1 + random() % 40, text.size() - at);
  switch (random() % 5) {
  case 0:
    text[at] = char(random());
    break;
  case 1:
    text.erase(at, length);
    break;
  case 2:
    text.insert(at, text.substr(at, length));
    break;
  case 3:
    text.insert(random() % text.size(), text.substr(at, length));
    break;
  case 4:
    text.insert(at, kWords[random() % std::size(kWords)].str());
    break;
  }
}

TEST(ParserFuzz, MutatedTextNeverCrashes) {
  const uint64_t seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 random(seed);
  unsigned accepted = 0;
  for (int i = 0; i != 20000; ++i) {
    std::string text = kTestProgram.str();
    for (uint64_t edits = 1 + random() % 4; edits != 0; --edits)
      mutate(text, random);
    ReadResult result;
    read(text, result);
    ASSERT_EQ(result.program == nullptr, !result.errors.empty()) << "seed " << seed << "\n" << text;
    if (!result.program)
      continue;
    ++accepted;
    defects(*result.program);
    const std::string once = printed(*result.program);
    ReadResult again;
    read(once, again);
    ASSERT_TRUE(again.program) << "seed " << seed << "\n" << again.errors << once;
    ASSERT_EQ(printed(*again.program), once) << "seed " << seed;
  }
  EXPECT_GT(accepted, 300u) << "mutations leave too little to look at";
}

} // namespace
