// fagen: tests of lowering for the checks of a spec: what lies next to what, what lies over the ring, what fits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Lower/Lower.h"

#include "fagen/Spec/Analyze.h"

#include "gtest/gtest.h"

using namespace fagen;

namespace {

/// One kernel of one schedule, f16 without a mask.
struct Measured {
  llvm::SourceMgr sources;
  std::string messages;
  Lowering lowering;
  std::optional<SpecFile> file;

  Measured(const std::string &target, const std::string &headDim, const std::string &schedule) {
    const std::string text = "target " + target + "; kernel k { problem { dtype = f16; head_dim = " + headDim +
                             "; } schedule s { " + schedule + " } select { otherwise : s; } }";
    unsigned id = sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, "t.fa"), llvm::SMLoc());
    llvm::raw_string_ostream os(messages);
    Diagnostics diags(sources, os);
    file = analyzeSpec(sources, id, diags, {{}, &lowering});
  }

  Arranged arranged() { return lowering.arrangedOf(file->kernels.at(0).variants.at(0)); }
  const Schedule &schedule() const { return file->kernels.at(0).variants.at(0).schedule; }
  uint64_t total() const { return schedule().shared.total; }
  /// 0 for a buffer that the kernel has not.
  uint64_t bytesOf(llvm::StringRef name) const {
    for (const SharedBuffer &buffer : schedule().shared.buffers)
      if (buffer.name == name)
        return buffer.bytes;
    return 0;
  }
};

Measured onAmpere(const std::string &headDim, const std::string &schedule) { return {"sm_90", headDim, schedule}; }
Measured onHopper(const std::string &headDim, const std::string &schedule) {
  return {"sm_90a", headDim, "warps = 8; mma = wgmma; " + schedule};
}

TEST(SharedMemory, QBesideTheRing) {
  Measured made = onAmpere("64", "tile = 256 x 128; warps = 8; mma = mma_sync; stages = 3;");
  ASSERT_TRUE(made.file) << made.messages;
  EXPECT_EQ(made.bytesOf("q"), 32768u);
  EXPECT_EQ(made.bytesOf("k"), 49152u);
  EXPECT_EQ(made.bytesOf("v"), 49152u);
  EXPECT_EQ(made.total(), 131072u);
}

TEST(SharedMemory, HeadDimsOfQKAndVDiffer) {
  Measured made = onAmpere("192 : 128", "tile = 64 x 32; warps = 4; mma = mma_sync; stages = 2;");
  ASSERT_TRUE(made.file) << made.messages;
  EXPECT_EQ(made.bytesOf("q"), 64u * 192 * 2);
  EXPECT_EQ(made.bytesOf("k"), 2u * 32 * 192 * 2);
  EXPECT_EQ(made.bytesOf("v"), 2u * 32 * 128 * 2);
}

TEST(SharedMemory, QGoesThroughTheRingWhenTheCtaIsLarge) {
  auto totalOf = [](const std::string &tileAndStages) {
    Measured made = onAmpere("64", tileAndStages + " warps = 8; mma = mma_sync; q_in = registers;");
    return made.file ? made.total() : 0;
  };
  EXPECT_EQ(totalOf("tile = 128 x 64; stages = 1;"), 16384u + 16384); // Q, K + V: small enough
  EXPECT_EQ(totalOf("tile = 128 x 64; stages = 2;"), 49152u);         // just so
  EXPECT_EQ(totalOf("tile = 128 x 64; stages = 3;"), 49152u);         // Q over the 3 stages of K + V
  EXPECT_EQ(totalOf("tile = 512 x 64; stages = 3;"), 65536u + 49152); // Q does not fit into K + V
}

TEST(SharedMemory, QHasTwoSlotsWhereTheyFit) {
  Measured one = onHopper("128", "tile = 128 x 128; stages = 2;");
  ASSERT_TRUE(one.file) << one.messages;
  EXPECT_EQ(one.arranged().querySlots, 1u); // a CTA has one tile
  Measured two = onHopper("128", "tile = 128 x 128; stages = 2; grid = longest_first;");
  ASSERT_TRUE(two.file) << two.messages;
  EXPECT_EQ(two.arranged().querySlots, 2u);
  EXPECT_EQ(two.bytesOf("q"), 2u * 32768);
  Measured wide = onHopper("64 : 128", "tile = 128 x 128; stages = 2; grid = longest_first;");
  ASSERT_TRUE(wide.file) << wide.messages;
  EXPECT_EQ(wide.arranged().querySlots, 1u); // O is wider than Q
}

TEST(SharedMemory, HalfOfTheResultsHasAPlaceWhereQHasOneSlot) {
  Measured staged = onHopper("256", "tile = 128 x 64; stages = 2; grid = longest_first;");
  ASSERT_TRUE(staged.file) << staged.messages;
  EXPECT_EQ(staged.arranged().querySlots, 1u);
  EXPECT_EQ(staged.arranged().stagedColumns, 128u);
  EXPECT_EQ(staged.bytesOf("out"), 32768u);
  Measured panels = onHopper("96 : 192", "tile = 128 x 64; stages = 2; grid = longest_first;");
  ASSERT_TRUE(panels.file) << panels.messages;
  EXPECT_EQ(panels.arranged().stagedColumns, 0u); // half is not a multiple of a panel
}

TEST(SharedMemory, PartialResultsLieOverTheRing) {
  Measured less = onAmpere("64", "tile = 16 x 64; warps = 4; mma = mma_sync; stages = 2;");
  ASSERT_TRUE(less.file) << less.messages;
  EXPECT_EQ(less.bytesOf("partial"), 4u * 16 * 72 * 4);
  EXPECT_EQ(less.total(), 2048u + 32768); // less than the ring
  Measured more = onAmpere("64", "tile = 16 x 64; warps = 4; mma = mma_sync; stages = 1;");
  ASSERT_TRUE(more.file) << more.messages;
  EXPECT_EQ(more.total(), 2048u + 18432);
}

TEST(SharedMemory, ScalarKernelsKeepScores) {
  Measured scalar = onAmpere("64", "tile = 32 x 64; warps = 4; mma = scalar; stages = 1;");
  ASSERT_TRUE(scalar.file) << scalar.messages;
  EXPECT_EQ(scalar.total(), 4096u + 8192 + 8192 + 8192);
  Measured reduced = onAmpere("64", "tile = 32 x 64; warps = 4; mma = scalar; stages = 1; reduce = shared;");
  ASSERT_TRUE(reduced.file) << reduced.messages;
  EXPECT_EQ(reduced.total(), 4096u + 8192 + 8192 + 8192 + 32 * 32 * 4);
}

TEST(SharedMemory, EveryBufferBeginsAligned) {
  Measured odd = onAmpere("8", "tile = 1 x 32; warps = 1; mma = scalar; stages = 1;");
  ASSERT_TRUE(odd.file) << odd.messages;
  EXPECT_EQ(odd.total(), 128u + 512 + 512 + 128);
}

TEST(Lowering, GivesAVariantOnce) {
  Measured made = onAmpere("64", "tile = 64 x 64; warps = 4; mma = mma_sync;");
  ASSERT_TRUE(made.file) << made.messages;
  const Variant &variant = made.file->kernels.at(0).variants.at(0);
  EXPECT_TRUE(made.lowering.take(variant));
  EXPECT_FALSE(made.lowering.take(variant));
}

TEST(Lowering, GivesNothingOfAnotherSchedule) {
  Measured made = onAmpere("64", "tile = 64 x 64; warps = 4; mma = mma_sync;");
  ASSERT_TRUE(made.file) << made.messages;
  Variant other = made.file->kernels.at(0).variants.at(0);
  other.schedule.stages = 3;
  EXPECT_FALSE(made.lowering.take(other));
}

} // namespace
