// fagen: every ptx function has a conformance case; judges accept what is right and nothing else.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/conformance/conformance.h"
#include "runtime/src/compile/nvrtc.h"

#include <cmath>
#include <gtest/gtest.h>
#include <regex>
#include <set>

using namespace fagen::lab;

namespace {

/// The functions that device/ptx defines, by the headers that the library carries.
std::set<std::string> ptxFunctions() {
  std::set<std::string> names;
  const std::regex definition(R"(__device__ __forceinline__ [\w \*&]+?[ &\*](\w+)(<\w+>)?\()");
  for (unsigned i = 0; i < fagen::kEmbeddedHeaderCount; ++i) {
    const fagen::EmbeddedHeader &header = fagen::kEmbeddedHeaders[i];
    if (std::string(header.name).find("fagen/device/ptx/") != 0)
      continue;
    const std::string text = header.text;
    for (std::sregex_iterator match(text.begin(), text.end(), definition), end; match != end; ++match)
      names.insert((*match)[1]);
  }
  return names;
}

/// The number of a launch's CTAs, of which a case has one; a fence, which changes no value; other names of the same
/// bits and an element as C++ reads it, which are no instruction of PTX; and sums in f16 by mma, which no GPU has
/// recorded.
bool hasNoCase(const std::string &name) {
  static const std::set<std::string> kWithout = {"cta_count",  "fence_device", "bits_float",
                                                 "element_of", "float_bits",   "mma_m16n8k16_f16_f16"};
  return kWithout.contains(name);
}

TEST(Cases, everyFunctionHasOne) {
  std::set<std::string> exercised;
  for (const ConformanceCase &c : conformanceCases())
    exercised.insert(c.functions.begin(), c.functions.end());
  const std::set<std::string> defined = ptxFunctions();
  EXPECT_GE(defined.size(), 50u);
  for (const std::string &name : defined)
    EXPECT_TRUE(exercised.contains(name) || hasNoCase(name)) << name << " of device/ptx has no case in lab/conformance";
  for (const std::string &name : exercised)
    EXPECT_TRUE(defined.contains(name)) << "a case names " << name << ", which device/ptx does not have";
}

TEST(Cases, namesDiffer) {
  std::set<std::string> names;
  for (const ConformanceCase &c : conformanceCases())
    EXPECT_TRUE(names.insert(c.name).second) << c.name;
}

/// A seed gives the same inputs everywhere: a recording is worth nothing otherwise.
TEST(Cases, inputsDependOnSeedAndRoundOnly) {
  const ConformanceCase &c = *conformanceCases("fma").front();
  EXPECT_EQ(conformanceInput(c, 1, 0), conformanceInput(c, 1, 0));
  EXPECT_NE(conformanceInput(c, 1, 0), conformanceInput(c, 1, 1));
  EXPECT_NE(conformanceInput(c, 1, 0), conformanceInput(c, 2, 0));
  Words words(1, "fma", 0);
  EXPECT_EQ(words.next(), 0xa03ba590u);
}

double ofBound(const char *name, float operand, uint32_t result) {
  const ConformanceCase &c = *conformanceCases(name).front();
  std::vector<Deviation> deviations(1);
  c.judge({asWord(operand)}, {result}, deviations);
  return deviations[0].ofBound;
}

TEST(Judges, exp2) {
  EXPECT_EQ(ofBound("exp2", 3, asWord(8)), 0);
  EXPECT_LE(ofBound("exp2", 3, asWord(8) + 2), 1);
  EXPECT_GT(ofBound("exp2", 3, asWord(8) + 3), 1);
  EXPECT_GT(ofBound("exp2", -130, asWord(0x1p-130f)), 1); // must be flushed
  EXPECT_EQ(ofBound("exp2", -130, 0), 0);
  EXPECT_GT(ofBound("exp2", -125, 0), 1);
  EXPECT_GT(ofBound("exp2", 200, asWord(0x1.fffffep127f)), 1);
  EXPECT_EQ(ofBound("exp2", 200, 0x7f800000), 0);
  EXPECT_GT(ofBound("exp2", NAN, 0), 1);
  EXPECT_EQ(ofBound("exp2", NAN, 0x7fffffff), 0);
}

TEST(Judges, log2) {
  EXPECT_LE(ofBound("log2", 1, asWord(0x1p-22f)), 1);
  EXPECT_GT(ofBound("log2", 1, asWord(0x1.1p-22f)), 1);
  EXPECT_EQ(ofBound("log2", 8, asWord(3)), 0);
  EXPECT_GT(ofBound("log2", 8, asWord(3) + 4), 1);
  EXPECT_EQ(ofBound("log2", 0x1p-140f, 0xff800000), 0);
  EXPECT_GT(ofBound("log2", 0x1p-140f, asWord(-140)), 1);
  EXPECT_EQ(ofBound("log2", -1, 0x7fffffff), 0);
}

TEST(Judges, tanh) {
  const float one = 0.76159416f; // tanh(1)
  EXPECT_LE(ofBound("tanh", 1, asWord(one * (1 + 0x1.fp-12f))), 1);
  EXPECT_GT(ofBound("tanh", 1, asWord(one * (1 + 0x1.1p-11f))), 1);
  EXPECT_EQ(ofBound("tanh", INFINITY, asWord(1)), 0);
  EXPECT_GT(ofBound("tanh", -INFINITY, asWord(1)), 1);
  EXPECT_GT(ofBound("tanh", -0.0f, 0), 1);
  EXPECT_LE(ofBound("tanh", 0x1p-130f, asWord(0x1p-130f)), 1); // kept
  EXPECT_GT(ofBound("tanh", 0x1p-130f, 0), 1);
  EXPECT_EQ(ofBound("tanh", NAN, 0x7fffffff), 0);
}

} // namespace
