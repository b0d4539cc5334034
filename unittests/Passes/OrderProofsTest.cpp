// fagen: tests of which kernels share a proof.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../IR/TestProgram.h"

#include "OrderProofs.h"

#include "gtest/gtest.h"

using namespace fagen;

namespace {

/// The key of a kernel of one role with this body.
std::string keyOf(llvm::StringRef body, llvm::StringRef type = "f16") {
  const std::string text = ("program @p {\n  kernel @k target sm_90a backend wgmma threads 128 phase split {\n"
                            "    const kWarps = 4\n    const kThreads = 128\n"
                            "    fragment %s : f32[16 x 64]\n    fragment %p : " +
                            type + "[16 x 64]\n    role all warps 0 to 4 {\n      " + body + "\n    }\n  }\n}\n")
                               .str();
  ir::ReadResult result;
  ir::read(text, result);
  EXPECT_TRUE(result.program) << result.errors << text;
  return result.program ? proofKey(*result.program->kernels.front()) : "";
}

TEST(ProofKey, HasNoElementType) { EXPECT_EQ(keyOf("convert %p, %s"), keyOf("convert %p, %s", "bf16")); }

TEST(ProofKey, HasNoRealNumbersOfMaps) {
  const std::string key = keyOf("map %s {value = max(log2(%s) - 4.0, 0.0) / 1.5}");
  EXPECT_EQ(key, keyOf("map %s {value = max(log2(%s) - -20.0, 1.0e+30) / 0.25}"));
  EXPECT_NE(key, keyOf("map %s {value = max(log2(%s) + 4.0, 0.0) / 1.5}"));
}

TEST(ProofKey, HasPlaces) {
  const std::string key = keyOf("map %s {value = k < 64 ? %s : 1.0, row = 0, key = 128}");
  EXPECT_EQ(key, keyOf("map %s {value = k < 64 ? %s : 2.0, row = 0, key = 128}"));
  EXPECT_NE(key, keyOf("map %s {value = k < 32 ? %s : 1.0, row = 0, key = 128}"));
  EXPECT_NE(key, keyOf("map %s {value = k < 64 ? %s : 1.0, row = 0, key = 64}"));
}

TEST(ProofKey, HasOfVotesWhetherTheyFence) {
  const std::string key = keyOf("vote %s {test = %s != 1.0} {\n}");
  EXPECT_EQ(key, keyOf("vote %s {test = !(%s <= 32768.0)} {\n}"));
  EXPECT_NE(key, keyOf("vote %s {test = %s != 1.0, fenced = 1} {\n}"));
}

} // namespace
