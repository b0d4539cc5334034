// fagen: tests of what measured times make of a kernel: thresholds of least worst regret, and which schedules win.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Spec/Tuned.h"
#include "fagen/Lower/Lower.h"
#include "fagen/Spec/Analyze.h"
#include "fagen/Spec/Program.h"

#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

using namespace fagen;

namespace {

constexpr const char *kSpec = R"(target sm_89;
kernel k {
  problem { dtype = f16; head_dim = 64; }
  schedule long { tile = 128 x 64; warps = 4; mma = mma_sync; }
  schedule short { tile = 16 x 64; warps = 4; mma = mma_sync; }
  select { when seq_q <= 32 : short; otherwise : long; }
})";

using Times = std::vector<std::pair<const char *, double>>; // tile and microseconds

TunedStudy study(int64_t batch, int64_t seqQ, int64_t seqKv, const Times &times) {
  TunedStudy result;
  result.gpu = "GPU";
  result.driver = "1";
  result.kernel = "k";
  result.target = "sm_89";
  result.dtype = "f16";
  result.accum = "f32";
  result.mask = "none";
  result.headDimQK = result.headDimV = 64;
  result.batch = batch;
  result.heads = result.kvHeads = 8;
  result.seqQ = seqQ;
  result.seqKv = seqKv;
  for (const auto &[tile, microseconds] : times)
    result.times.push_back({{{"tile", tile}}, microseconds});
  return result;
}

/// The kernel after applyTuned.
struct Applied {
  llvm::SourceMgr sources;
  std::string messages;
  KernelSpec kernel;

  explicit Applied(const std::vector<TunedStudy> &studies, TunedVeto veto = nullptr) {
    unsigned id = sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(kSpec, "t.fa"), llvm::SMLoc());
    llvm::raw_string_ostream os(messages);
    Diagnostics diags(sources, os);
    Lowering lowering;
    kernel = analyzeSpec(sources, id, diags, {{}, &lowering})->kernels.front();
    applyTuned(kernel, studies, lowering, diags, veto);
  }

  std::vector<std::string> select() const {
    std::vector<std::string> lines;
    for (const SelectLine &line : kernel.select)
      lines.push_back(line.text + " : " + kernel.scheduleNames[line.scheduleIndex]);
    return lines;
  }

  /// The query rows and keys of the schedule that select gives to a problem.
  std::pair<unsigned, unsigned> tileFor(int64_t batch, int64_t seqQ, int64_t seqKv) const {
    auto variable = [&](int64_t which) -> int64_t {
      switch (SelectVariable(which)) {
      case SelectVariable::Batch:
        return batch;
      case SelectVariable::Heads:
        return 8;
      case SelectVariable::SeqQ:
        return seqQ;
      case SelectVariable::SeqKv:
        return seqKv;
      default:
        ADD_FAILURE() << "no condition asks for " << which;
        return 0;
      }
    };
    for (const SelectLine &line : kernel.select)
      if (line.condition.empty() || evaluate(line.condition, variable).value_or(0))
        for (const Variant &variant : kernel.variants)
          if (variant.scheduleIndex == line.scheduleIndex)
            return {variant.schedule.tileRows, variant.schedule.tileKeys};
    return {0, 0};
  }
};

using Lines = std::vector<std::string>;
using Tile = std::pair<unsigned, unsigned>;

TEST(Tuned, OneChoiceThatIsBestEverywhereReplacesTheValues) {
  Applied applied({study(1, 512, 512, {{"128 x 64", 10}, {"64 x 64", 8}}),
                   study(4, 4096, 4096, {{"128 x 64", 100}, {"64 x 64", 90}})});
  EXPECT_EQ(applied.select(), (Lines{"seq_q <= 32 : short", "otherwise : long"}));
  EXPECT_EQ(applied.tileFor(1, 512, 512), (Tile{64, 64}));
  EXPECT_EQ(applied.tileFor(1, 16, 512), (Tile{16, 64}));
  EXPECT_EQ(applied.kernel.variants.back().schedule.tileRows, 128u) << "the implicit row stays";
}

TEST(Tuned, TheSpecsValuesStayWhenTheyAreNotSurelyWorse) {
  Applied applied({study(1, 512, 512, {{"128 x 64", 10.04}, {"64 x 64", 10}})});
  EXPECT_EQ(applied.tileFor(1, 512, 512), (Tile{128, 64}));
}

TEST(Tuned, AThresholdOnTheFigureThatTellsThemApart) {
  // The same lengths, other numbers of CTAs: only batch * heads * seq_q separates.
  Applied applied({study(1, 512, 512, {{"128 x 64", 12}, {"64 x 64", 8}}),
                   study(1, 2048, 512, {{"128 x 64", 33}, {"64 x 64", 30}}),
                   study(16, 512, 512, {{"128 x 64", 80}, {"64 x 64", 99}})});
  EXPECT_EQ(applied.select(),
            (Lines{"seq_q <= 32 : short", "batch * heads * seq_q <= 32768 : long_tuned1", "otherwise : long"}));
  EXPECT_EQ(applied.kernel.scheduleNames[applied.kernel.variants.back().scheduleIndex], "unaligned");
  EXPECT_EQ(applied.tileFor(1, 512, 512), (Tile{64, 64}));
  EXPECT_EQ(applied.tileFor(16, 512, 512), (Tile{128, 64}));
  EXPECT_EQ(applied.tileFor(1, 4096, 512), (Tile{64, 64})) << "8 * 4096 is the limit";
  EXPECT_EQ(applied.tileFor(1, 4097, 512), (Tile{128, 64}));
  EXPECT_EQ(applied.tileFor(1, 32, 512), (Tile{16, 64})) << "other lines of select come first as before";
}

TEST(Tuned, EachThresholdHasAFigureOfItsOwn) {
  // No figure alone separates all three.
  Applied applied({study(1, 512, 512, {{"128 x 64", 12}, {"64 x 64", 20}, {"32 x 64", 6}}),
                   study(16, 512, 512, {{"128 x 64", 120}, {"64 x 64", 80}, {"32 x 64", 200}}),
                   study(4, 2048, 2048, {{"128 x 64", 300}, {"64 x 64", 400}, {"32 x 64", 900}})});
  EXPECT_EQ(applied.select(), (Lines{"seq_q <= 32 : short", "batch * heads * seq_q <= 16384 : long_tuned1",
                                     "seq_q <= 1024 : long_tuned2", "otherwise : long"}));
  EXPECT_EQ(applied.tileFor(1, 512, 512), (Tile{32, 64}));
  EXPECT_EQ(applied.tileFor(16, 512, 512), (Tile{64, 64}));
  EXPECT_EQ(applied.tileFor(4, 2048, 2048), (Tile{128, 64}));
  EXPECT_EQ(applied.tileFor(1, 2048, 2048), (Tile{32, 64})) << "the first line that holds";
  const auto &evidence = applied.kernel.select[1].evidence;
  EXPECT_EQ(evidence[1], "below: 1,8,8,512,512,64: 6.00 us here, 20.00 us beyond the threshold")
      << "of two problems at the same distance the one of the next part";
}

TEST(Tuned, WhatIsRefusedIsLeftOutAndTheNextBestTaken) {
  std::vector<unsigned> asked;
  auto veto = [&](const KernelSpec &, const Variant &variant) -> std::string {
    asked.push_back(variant.schedule.tileRows);
    return variant.schedule.tileRows == 64 ? "spills 8" : "";
  };
  Applied applied({study(1, 512, 512, {{"128 x 64", 12}, {"64 x 64", 8}, {"32 x 64", 9}, {"16 x 64", 20}})}, veto);
  EXPECT_EQ(applied.tileFor(1, 512, 512), (Tile{32, 64}));
  EXPECT_EQ(asked, (std::vector<unsigned>{64, 32})) << "only what would be taken, once";
  EXPECT_NE(
      applied.messages.find("warning: tuned settings of k_long_f16_d64_none are left out (tile = 64 x 64): spills 8"),
      std::string::npos)
      << applied.messages;
}

TEST(Tuned, LinesBeforeALineWithAConditionKeepIt) {
  Applied applied(
      {study(1, 8, 512, {{"16 x 64", 9}, {"16 x 128", 5}}), study(1, 8, 8192, {{"16 x 64", 50}, {"16 x 128", 99}})});
  EXPECT_EQ(applied.select(),
            (Lines{"seq_kv <= 2048 && (seq_q <= 32) : short_tuned1", "seq_q <= 32 : short", "otherwise : long"}));
  EXPECT_EQ(applied.tileFor(1, 8, 512), (Tile{16, 128}));
  EXPECT_EQ(applied.tileFor(1, 8, 8192), (Tile{16, 64}));
  EXPECT_EQ(applied.tileFor(1, 512, 512), (Tile{128, 64}));
}

TEST(Tuned, TheWorstRegretDecidesNotTheSum) {
  // Nothing that select can ask for tells these apart. Regrets: 1, 1, 1.2 and 1.15, 1.15, 1.
  std::vector<TunedStudy> studies = {study(1, 512, 512, {{"128 x 64", 30}, {"64 x 64", 10}, {"32 x 64", 11.5}}),
                                     study(1, 512, 512, {{"128 x 64", 30}, {"64 x 64", 10}, {"32 x 64", 11.5}}),
                                     study(1, 512, 512, {{"128 x 64", 30}, {"64 x 64", 12}, {"32 x 64", 10}})};
  for (int64_t i = 0; i < 3; ++i)
    studies[i].kvHeads = 8 >> i;
  EXPECT_EQ(Applied(studies).tileFor(1, 512, 512), (Tile{32, 64}));
}

TEST(Tuned, OfTwoStudiesOfOneProblemTheLaterOneCounts) {
  Applied applied({study(1, 512, 512, {{"128 x 64", 30}, {"64 x 64", 10}}),
                   study(1, 512, 512, {{"128 x 64", 30}, {"64 x 64", 12}, {"32 x 64", 10}})});
  EXPECT_EQ(applied.tileFor(1, 512, 512), (Tile{32, 64}));
}

TEST(Tuned, WhatWasNotMeasuredEverywhereIsNotTakenEverywhere) {
  Applied applied({study(1, 512, 512, {{"128 x 64", 12}, {"64 x 64", 8}}), study(1, 4096, 4096, {{"128 x 64", 90}})});
  EXPECT_EQ(applied.tileFor(1, 512, 512), (Tile{64, 64}));
  EXPECT_EQ(applied.tileFor(1, 4096, 4096), (Tile{128, 64}));
}

TEST(Tuned, HashesAreTheTuners) {
  EXPECT_EQ(tunedSpecHash("", ""), "cbf29ce484222325");
  EXPECT_EQ(tunedSpecHash("a", ""), "af63dc4c8601ec8c");
  EXPECT_EQ(tunedSpecHash("fo", "obar"), "85944171f73967e8");
}

} // namespace
