// fagen: tiles judged by intervals against asking the mask for every row and key.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// FAGEN_RANDOM_MASKS says how many masks there are; FAGEN_RANDOM_SEED, where they begin.

#include "../Environment.h"
#include "ParsedExpr.h"
#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/IR.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <vector>

using namespace fagen::ir;
using llvm::StringRef;

namespace {

constexpr int64_t kTileRows = 4, kTileKeys = 4, kSeqKv = 22;

/// A kernel that reads tensors, and what they hold.
struct World {
  World() {
    declare("doc", ElementType::I32, {variable("seq_kv")});
    declare("map", ElementType::U8, {constant(4), constant(5)});
    declare("signed", ElementType::I32, {constant(4), constant(5)});
    declare("bits", ElementType::Bit, {variable("seq_kv")});
    declare("real", ElementType::F32, {variable("seq_kv")});
  }

  void declare(StringRef name, ElementType type, std::vector<Expr> shape) {
    Buffer buffer;
    buffer.name = buffer.param = name.str();
    buffer.space = Space::Global;
    buffer.isStrided = true;
    buffer.type = type;
    buffer.shape.assign(shape.begin(), shape.end());
    kernel.addBuffer(std::move(buffer));
  }

  void fill(std::mt19937_64 &random) {
    auto draw = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
    int64_t document = 0;
    for (int64_t key = 0; key != kSeqKv; ++key) {
      document += draw(0, 3) == 0;
      elements["doc"][{key}] = document;
      elements["bits"][{key}] = draw(0, 1);
    }
    const int64_t density = draw(0, 3);
    for (int64_t row = 0; row != 4; ++row)
      for (int64_t column = 0; column != 5; ++column) {
        elements["map"][{row, column}] = draw(0, 3) <= density - 1 ? draw(1, 255) : 0;
        elements["signed"][{row, column}] = draw(-2, 2);
      }
  }

  int64_t element(const Expr &read, llvm::ArrayRef<int64_t> at) {
    const auto found = elements[read.operands().front().name().drop_front().str()].find({at.begin(), at.end()});
    EXPECT_NE(found, elements[read.operands().front().name().drop_front().str()].end())
        << read.str() << " is read outside of the tensor";
    return found->second;
  }

  int64_t evaluate(const Expr &expr) {
    auto operand = [&](size_t i) { return evaluate(expr.operands()[i]); };
    switch (expr.kind()) {
    case ExprKind::Constant:
      return expr.value();
    case ExprKind::Variable:
      return values.at(expr.name().str());
    case ExprKind::Ascending:
      return operand(0);
    case ExprKind::Not:
      return operand(0) == 0;
    case ExprKind::Select:
      return operand(0) != 0 ? operand(1) : operand(2);
    case ExprKind::Read: {
      std::vector<int64_t> at;
      for (const Expr &index : expr.indices())
        at.push_back(evaluate(index));
      return element(expr, at);
    }
    case ExprKind::Lowest:
    case ExprKind::Highest:
      return extreme(expr.operand(), expr.kind() == ExprKind::Lowest);
    default:
      return *applyBinary(expr.kind(), operand(0), operand(1));
    }
  }

  int64_t extreme(const Expr &box, bool isLowest) {
    const size_t rank = box.indices().size() / 2;
    std::vector<int64_t> low, high;
    for (size_t d = 0; d != rank; ++d) {
      low.push_back(evaluate(box.indices()[d]));
      high.push_back(evaluate(box.indices()[rank + d]));
      EXPECT_LE(low[d], high[d]) << box.str();
    }
    std::vector<int64_t> at = low;
    int64_t found = element(box, at);
    for (;;) {
      const int64_t value = element(box, at);
      found = isLowest ? std::min(found, value) : std::max(found, value);
      size_t d = rank;
      while (d != 0 && at[d - 1] == high[d - 1]) {
        at[d - 1] = low[d - 1];
        --d;
      }
      if (d == 0)
        return found;
      ++at[d - 1];
    }
  }

  Kernel kernel;
  std::map<std::string, int64_t> values;
  std::map<std::string, std::map<std::vector<int64_t>, int64_t>> elements;
};

struct Counts {
  unsigned tiles = 0, empty = 0, foundEmpty = 0, whole = 0, foundWhole = 0;
};

/// Judges all tiles of rows and runs of keys.
void judgeAll(World &world, const std::string &text, Counts &counts, JudgedReads reads = JudgedReads::Few) {
  const Expr mask = parse(text);
  const MaskJudgement judgement =
      judgeMask(world.kernel, mask, variable("row_begin"), variable("row_begin") + constant(kTileRows - 1),
                variable("low"), variable("high"), reads);
  for (int64_t row = 0; row < 20; row += kTileRows)
    for (int64_t key = 0; key < kSeqKv; key += kTileKeys) {
      world.values = {{"seq_kv", kSeqKv}, {"n", 3}, {"row_begin", row}, {"low", key}, {"high", key + kTileKeys - 1}};
      const bool seen = world.evaluate(judgement.seen) != 0, whole = world.evaluate(judgement.whole) != 0;
      bool any = false, all = true;
      for (int64_t q = row; q != row + kTileRows; ++q)
        for (int64_t k = key; k != key + kTileKeys; ++k) {
          world.values["q"] = q;
          world.values["k"] = k;
          const bool isVisible = world.evaluate(mask) != 0;
          any |= isVisible;
          all &= isVisible;
        }
      EXPECT_TRUE(seen || !any) << text << ": rows from " << row << ", keys from " << key << " are seen";
      EXPECT_TRUE(!whole || all) << text << ": rows from " << row << ", keys from " << key << " are not whole";
      ++counts.tiles;
      counts.empty += !any;
      counts.foundEmpty += !seen;
      counts.whole += all;
      counts.foundWhole += whole;
    }
}

Counts judgeOnce(const std::string &text, JudgedReads reads = JudgedReads::Few) {
  World world;
  std::mt19937_64 random(7);
  Counts counts;
  for (unsigned i = 0; i != 20; ++i) {
    world.fill(random);
    judgeAll(world, text, counts, reads);
  }
  return counts;
}

const std::string kDocuments = "ascending(%doc[min(k, seq_kv - 1)]) == ascending(%doc[min(q, seq_kv - 1)])";
const std::string kMap = "%map[min(floor_div(q, 5), 3), min(floor_div(k, 5), 4)] != 0";

TEST(JudgeMask, DocumentsAreFoundByTheirEnds) {
  const Counts counts = judgeOnce("k < seq_kv && " + kDocuments);
  EXPECT_GT(counts.empty, 0u);
  EXPECT_EQ(counts.foundEmpty, counts.empty); // values ascend: intervals that meet have a value in common, or a step
  EXPECT_EQ(counts.foundWhole, counts.whole);
}

TEST(JudgeMask, BlocksOfAMapAreRead) {
  const Counts counts = judgeOnce("k < seq_kv && " + kMap);
  EXPECT_GT(counts.empty, 0u);
  EXPECT_EQ(counts.foundEmpty, counts.empty);
  EXPECT_EQ(counts.foundWhole, counts.whole);
}

TEST(JudgeMask, WhatDiffersByTheKeyIsNotJudged) {
  for (const char *text : {"%bits[min(k, seq_kv - 1)] == 1", "%bits[max(min(k - 3, seq_kv - 1), 0)] == 1",
                           "floor_mod(k - q, 3) == 0", "%real[min(k, seq_kv - 1)] < 0.5"}) {
    World world;
    const MaskJudgement judgement =
        judgeMask(world.kernel, parse(text), variable("a"), variable("b"), variable("c"), variable("d"));
    EXPECT_EQ(judgement.seen.str(), "1") << text;
    EXPECT_EQ(judgement.whole.str(), "0") << text;
  }
}

TEST(JudgeMask, WhatDiffersByTheKeyOrTheRowIsReadByALaunchBefore) {
  for (const char *text :
       {"k < seq_kv && %bits[min(k, seq_kv - 1)] == 1", "k < seq_kv && %bits[min(q, seq_kv - 1)] != 0"}) {
    const Counts counts = judgeOnce(text, JudgedReads::Runs);
    EXPECT_GT(counts.empty, 0u) << text;
    EXPECT_EQ(counts.foundEmpty, counts.empty) << text;
    EXPECT_EQ(counts.foundWhole, counts.whole) << text;
  }
}

TEST(JudgeMask, WhatDiffersByBothIsNot) {
  World world;
  world.declare("both", ElementType::U8, {constant(20), variable("seq_kv")});
  for (const char *text : {"%both[min(q, 19), min(k, seq_kv - 1)] != 0", "%real[min(k, seq_kv - 1)] < 0.5"}) {
    EXPECT_TRUE(needsMore(world.kernel, parse(text), JudgedReads::Runs)) << text;
    EXPECT_FALSE(canBeJudged(world.kernel, parse(text), JudgedReads::Runs)) << text;
  }
  const Expr either = parse("k < 3 || %both[min(q, 19), min(k, seq_kv - 1)] != 0"); // of its first keys the ends tell
  EXPECT_TRUE(canBeJudged(world.kernel, either, JudgedReads::Runs));
  EXPECT_TRUE(needsMore(world.kernel, either, JudgedReads::Runs));
  for (const char *text : {"floor_mod(k, 2) == 0", "%map[min(floor_div(q, 5), 3), min(floor_div(k, 5), 4)] != 0"})
    EXPECT_FALSE(needsMore(world.kernel, parse(text), JudgedReads::Few)) << text;
  EXPECT_TRUE(needsMore(world.kernel, parse("%bits[min(k, seq_kv - 1)] == 1"), JudgedReads::Few));
  EXPECT_FALSE(needsMore(world.kernel, parse("%bits[min(k, seq_kv - 1)] == 1"), JudgedReads::Runs));
}

/// Indices that intervals make wider than they are stay inside.
TEST(JudgeMask, BoxesAreHeldToTheTensor) {
  const Counts counts = judgeOnce("%map[floor_div(q, 5) - floor_div(q, 10), min(floor_div(k, 5), 4)] != 0");
  EXPECT_GT(counts.tiles, 0u);
}

std::string atom(std::mt19937_64 &random) {
  static const std::string kAtoms[] = {
      "k <= q + n",
      "q - k < 6",
      "2 * k < q + 7",
      "floor_mod(q - k, 2) == 0",
      "floor_div(k, 3) == floor_div(q, 3)",
      "%bits[min(k, seq_kv - 1)] == 1",
      "%signed[min(floor_div(q, 6), 3), min(floor_div(k, 7), 4)] < 1",
      "%signed[min(floor_div(q, 6), 3), 2] != %signed[1, min(floor_div(k, 7), 4)]",
      "(n == 0 ? 0 : %map[min(floor_div(q, 9), 3), min(floor_div(k, 3), 4)]) == 0",
      "ascending(%doc[min(k, seq_kv - 1)]) <= ascending(%doc[min(q, seq_kv - 1)]) + 1",
      kDocuments,
      kMap,
      "%map[min(floor_div(q, 5), 3), min(floor_div(k, 5), 4)]",
      "%signed[min(floor_div(q, 5), 3), min(floor_div(k, 5), 4)]",
  };
  return kAtoms[random() % std::size(kAtoms)];
}

std::string any(std::mt19937_64 &random, unsigned depth) {
  if (depth == 0)
    return atom(random);
  const std::string a = any(random, depth - 1), b = any(random, depth - 1);
  const uint64_t kind = random() % 6;
  return kind == 0 ? "!(" + a + ")" : kind < 3 ? "((" + a + ") || (" + b + "))" : "((" + a + ") && (" + b + "))";
}

TEST(JudgeMask, RandomMasksAreJudgedSoundly) {
  const uint64_t masks = fromEnvironment("FAGEN_RANDOM_MASKS", 2000), seed = fromEnvironment("FAGEN_RANDOM_SEED", 1);
  Counts counts, byRuns;
  for (uint64_t i = 0; i != masks && !testing::Test::HasFailure(); ++i) {
    std::mt19937_64 random(seed + i);
    World world;
    world.fill(random);
    const std::string mask = any(random, random() % 4);
    judgeAll(world, mask, counts);
    judgeAll(world, mask, byRuns, JudgedReads::Runs);
  }
  std::printf("%llu masks: %u tiles, %u empty, %u of them found; %u whole, %u of them found\n",
              static_cast<unsigned long long>(masks), counts.tiles, counts.empty, counts.foundEmpty, counts.whole,
              counts.foundWhole);
  EXPECT_GT(counts.foundEmpty, counts.empty / 2);
  EXPECT_GT(counts.foundWhole, counts.whole / 2);
  EXPECT_GT(byRuns.foundEmpty, counts.foundEmpty);
  EXPECT_GT(byRuns.foundWhole, counts.foundWhole);
}

} // namespace
