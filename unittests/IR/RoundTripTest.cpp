// fagen: print -> parse -> print gives the same text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestProgram.h"

#include "gtest/gtest.h"

using namespace fagen::ir;

namespace {

TEST(RoundTrip, PrintsWhatItRead) {
  ReadResult result;
  read(kTestProgram, result);
  ASSERT_TRUE(result.program) << result.errors;
  EXPECT_EQ(printed(*result.program), kTestProgram.str());
  EXPECT_EQ(defects(*result.program), "");
}

TEST(RoundTrip, KeepsEveryByteOfAString) {
  ReadResult result;
  read(kTestProgram, result);
  ASSERT_TRUE(result.program);
  std::string note;
  for (int c = 1; c != 256; ++c)
    note += char(c);
  result.program->kernels[0]->lets[0].note = note;
  ReadResult again;
  read(printed(*result.program), again);
  ASSERT_TRUE(again.program) << again.errors;
  EXPECT_EQ(again.program->kernels[0]->lets[0].note, note);
}

TEST(RoundTrip, SkipsComments) {
  ReadResult result;
  read(("// a\n" + kTestProgram + "// b").str(), result);
  EXPECT_TRUE(result.program) << result.errors;
}

TEST(RoundTrip, ErrorsHaveAPlace) {
  ReadResult result;
  read("program @p {\n  kernel @k target sm_89 backend x threads 32 phase bilt {", result);
  EXPECT_FALSE(result.program);
  EXPECT_NE(result.errors.find("test.fair:2:53: error: expected a phase: built"), std::string::npos) << result.errors;
}

} // namespace
