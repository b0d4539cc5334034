// fagen: tests of the front end's door: what it returns, how long it takes, and that no text breaks it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Spec/Analyze.h"
#include "../Environment.h"
#include "fagen/Lower/Lower.h"
#include "fagen/Spec/PrintSpec.h"

#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

#include <chrono>
#include <iostream>
#include <random>

using namespace fagen;

namespace {

std::string readSpec(const std::string &name) {
  auto buffer = llvm::MemoryBuffer::getFile(FAGEN_SPECS "/" + name);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

struct Analysis {
  llvm::SourceMgr sources;
  std::string messages;
  std::optional<SpecFile> file;
  Lowering lowering;

  explicit Analysis(const std::string &text) {
    unsigned id = sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, "dir/t.fa"), llvm::SMLoc());
    llvm::raw_string_ostream os(messages);
    Diagnostics diags(sources, os);
    file = analyzeSpec(sources, id, diags, {{}, &lowering});
  }
};

TEST(Analyze, ReturnsVariantsSelectAndGates) {
  Analysis analysis(readSpec("l4_fp16.fa"));
  ASSERT_TRUE(analysis.file);
  EXPECT_EQ(analysis.file->baseName, "t.fa");
  const KernelSpec &kernel = analysis.file->kernels.at(0);
  EXPECT_EQ(kernel.variants.size(), 16u); // 3 schedules x 2 head dims x 2 masks, and an implicit row a problem
  EXPECT_EQ(kernel.scheduleNames, (std::vector<std::string>{"prefill", "medium", "short", "unaligned"}));
  EXPECT_EQ(kernel.select.size(), 4u);
  EXPECT_EQ(kernel.select[0].scheduleIndex, 2u);
  EXPECT_TRUE(kernel.select[3].condition.empty());
  EXPECT_EQ(kernel.gates.size(), 4u);
  EXPECT_EQ(kernel.gates[3].baseline, "sdpa");
  EXPECT_DOUBLE_EQ(kernel.gates[3].value, 0.95);
  const Variant &variant = kernel.variants[0];
  EXPECT_EQ(variant.symbol, "fagen_l4_fp16_prefill_f16_d64_none_sm_89");
  EXPECT_EQ(variant.schedule.locationOf("tile").line, 15u);
  EXPECT_EQ(variant.schedule.locationOf("vector").line, 14u); // a default: the schedule's own place
}

TEST(Analyze, NothingAfterAMistake) {
  Analysis analysis(readSpec("bad.fa"));
  EXPECT_FALSE(analysis.file);
  EXPECT_NE(analysis.messages.find("dir/t.fa:8:16: error: unknown mask 'sliding'"), std::string::npos);
}

TEST(Analyze, IsFast) {
  std::string text = readSpec("l4_fp16.fa");
  auto begin = std::chrono::steady_clock::now();
  Analysis analysis(text);
  auto elapsed = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(std::chrono::duration<double>(elapsed).count(), 0.05);
}

/// One random edit: a byte changed, a piece removed, doubled or moved.
std::string mutate(std::string text, std::mt19937 &random) {
  auto below = [&](size_t limit) { return limit == 0 ? 0 : random() % limit; };
  size_t at = below(text.size()), length = 1 + below(24);
  std::string piece = text.substr(at, length);
  switch (random() % 5) {
  case 0:
    text[at] = char(random());
    break;
  case 1:
    text.erase(at, length);
    break;
  case 2:
    text.insert(below(text.size()), piece);
    break;
  case 3:
    text[at] = "{}()[];:=<>!+-*/%&|,x0189 \n"[random() % 27];
    break;
  default:
    text.insert(at, std::to_string(random()));
  }
  return text;
}

// Whatever the text, there is a checked file or an error, and what was accepted can be printed. FAGEN_RANDOM_TEXTS says
// how many edits of each spec there are; FAGEN_RANDOM_SEED, where they begin.
TEST(Analyze, NoTextBreaksIt) {
  const uint64_t seed = fromEnvironment("FAGEN_RANDOM_SEED", 20), edits = fromEnvironment("FAGEN_RANDOM_TEXTS", 200);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(static_cast<unsigned>(seed));
  uint64_t accepted = 0;
  for (const char *name : {"l4_fp16.fa", "l4_fp16_scalar.fa", "h200_fp16.fa", "bad.fa"}) {
    std::string original = readSpec(name);
    ASSERT_FALSE(original.empty());
    for (uint64_t i = 0; i != edits; ++i) {
      std::string text = original;
      for (unsigned changes = 1 + random() % 4; changes != 0; --changes)
        text = mutate(std::move(text), random);
      Analysis analysis(text);
      bool hasError = analysis.messages.find("error:") != std::string::npos;
      ASSERT_EQ(hasError, !analysis.file.has_value()) << text;
      accepted += analysis.file.has_value();
      if (analysis.file)
        printSpec(*analysis.file, llvm::nulls());
    }
  }
  std::cout << 4 * edits << " edited specs, of which " << accepted << " were accepted\n";
  EXPECT_GT(accepted, 0u);
  EXPECT_LT(accepted, 4 * edits);
}

} // namespace
