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

/// Terms that differ by their reals alone do not cancel, and stay two.
TEST(ProofKey, HasTermsOfReals) {
  const std::string key = keyOf("map %s {value = %s * 2.0 - %s * 3.0}");
  EXPECT_EQ(key, keyOf("map %s {value = %s * 4.0 - %s * 5.0}"));
  EXPECT_NE(key, keyOf("map %s {value = 0.0}"));
  EXPECT_NE(keyOf("map %s {value = 0 < seq_q ? 1.0 : 2.0}"), keyOf("map %s {value = 1.0}"));
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

/// The key of a ring that `load` fills and `math` reads, of tiles of so many columns.
struct Ring {
  unsigned columns = 64, offset = 0, bytes = 8192;
  llvm::StringRef let = "ceil_div(seq_kv, 64)", use = "abt";
  std::string keyOfRoles() const;
};

std::string Ring::keyOfRoles() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "program @p {\n  kernel @k target sm_90a backend wgmma threads 256 phase allocated shared "
     << 65536 + 4 * columns
     << " {\n"
        "    const kWarps = 4\n    const kLoadWarps = 4\n    const kThreads = 256\n    const kRowWarps = 4\n"
        "    const kKeyWarps = 1\n    const kStages = 2\n    const kHeadDim = "
     << columns
     << "\n"
        "    global %gk : f16[rows x kHeadDim]\n"
        "    shared %k : f16[64 x kHeadDim] stages kStages swizzle xor offset "
     << offset
     << "\n    shared %q : f16[64 x kHeadDim] swizzle xor offset 32768\n"
        "    shared %full : mbarrier[1 x 1] stages kStages offset 65536\n"
        "    shared %empty : mbarrier[1 x 1] stages kStages offset 65664\n"
        "    fragment %s : f32[16 x 64]\n"
        "    let key_tiles = "
     << let
     << "\n    role load warps 0 to 4 {\n      loop j = 0 to key_tiles {\n"
        "        wait %empty[j - kStages] {by = \"role\"}\n        arrive %full[j] {by = \"role\", bytes = "
     << bytes
     << "}\n        copy_issue %k[j], %gk, %full[j] {kind = \"bulk\", row = j * 64, limit = seq_kv}\n      }\n    }\n"
        "    role math warps 4 to 8 {\n      loop j = 0 to key_tiles {\n        wait %full[j] {by = \"thread\"}\n"
        "        mma_issue %s, %q, %k[j] {form = \""
     << use
     << "\", accumulate = 0}\n        mma_commit\n        mma_wait {pending = 0}\n"
        "        arrive %empty[j] {by = \"group\"}\n      }\n    }\n  }\n}\n";
  ir::ReadResult result;
  ir::read(text, result);
  EXPECT_TRUE(result.program) << result.errors << text;
  return result.program ? proofKeyOfRoles(*result.program->kernels.front()) : "";
}

/// Twice the columns take twice the bytes of all copies, and meet as before.
TEST(ProofKeyOfRoles, HasNoHeadDim) {
  EXPECT_EQ(Ring().keyOfRoles(), (Ring{.columns = 128, .bytes = 16384}).keyOfRoles());
}

TEST(ProofKeyOfRoles, HasProportionsOfBytes) {
  EXPECT_NE(Ring().keyOfRoles(), (Ring{.columns = 128, .bytes = 8192}).keyOfRoles());
}

TEST(ProofKeyOfRoles, HasBytesOfWhichThereAreTooMany) {
  EXPECT_NE(Ring().keyOfRoles(), (Ring{.columns = 64 * 128, .bytes = 128 * 8192}).keyOfRoles());
}

TEST(ProofKeyOfRoles, HasWhoMeets) {
  EXPECT_EQ(Ring().keyOfRoles(), Ring{.offset = 128}.keyOfRoles());
  EXPECT_NE(Ring().keyOfRoles(), Ring{.offset = 32768}.keyOfRoles()); // over %q
}

/// A value that steers a loop may name what shapes name.
TEST(ProofKeyOfRoles, HasConstantsThatOthersName) {
  auto keyOf = [](unsigned columns) {
    return Ring{.columns = columns, .bytes = columns * 128, .let = "ceil_div(seq_kv, kHeadDim)"}.keyOfRoles();
  };
  EXPECT_NE(keyOf(64), keyOf(128));
}

} // namespace
