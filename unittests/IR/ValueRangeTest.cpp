// fagen: tests of valueRange against asking the expression for every value of its params.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/ValueRange.h"
#include "ParsedExpr.h"
#include "fagen/IR/IR.h"

#include "gtest/gtest.h"

using namespace fagen::ir;
using llvm::StringRef;

namespace {

/// a, b and c have small ranges; far has none to speak of.
struct World {
  World() {
    kernel.scalars = {{"a", false, -9, 9}, {"b", false, 0, 12}, {"c", false, 1, 7}, {"far", false, -kFar, kFar}};
    declare("signed", ElementType::I32, std::nullopt);
    declare("known", ElementType::I32, Interval{3, 90});
    declare("bytes", ElementType::U8, std::nullopt);
  }

  void declare(StringRef name, ElementType type, std::optional<Interval> values) {
    Buffer buffer;
    buffer.name = buffer.param = name.str();
    buffer.space = Space::Global;
    buffer.type = type;
    buffer.shape.push_back(variable("seq_kv"));
    buffer.values = values;
    kernel.addBuffer(std::move(buffer));
  }

  Interval of(StringRef text) const { return valueRange(kernel, parse(text)); }

  static constexpr int64_t kFar = int64_t(1) << 30;
  Kernel kernel;
};

TEST(ValueRange, HoldsEveryValue) {
  const World world;
  for (StringRef text : {"a + b",
                         "a - b + c",
                         "a * b - c",
                         "floor_div(a, c)",
                         "floor_div(a - b, c) * c",
                         "c * floor_div(a, c)",
                         "c * (floor_div(a, c) + 1)",
                         "ceil_div(a, c)",
                         "floor_mod(a, c)",
                         "floor_mod(a - b, 5)",
                         "a % c",
                         "min(a, b)",
                         "max(a, 0) - b",
                         "a & b",
                         "a & 6",
                         "b | c",
                         "b ^ c",
                         "a ^ b",
                         "a >> 2",
                         "b << 3",
                         "a < b",
                         "a < b && c > 3",
                         "a < 0 ? b : c",
                         "!(a < b)",
                         "floor_div(floor_div(a, 2), c)",
                         "(a + b) * (c - 4)"}) {
    const Expr expr = parse(text);
    const Interval range = valueRange(world.kernel, expr);
    for (int64_t a = -9; a <= 9; ++a)
      for (int64_t b = 0; b <= 12; ++b)
        for (int64_t c = 1; c <= 7; ++c) {
          const std::optional<int64_t> value = expr.evaluate([&](StringRef name) {
            return std::optional(name == "a" ? a : name == "b" ? b : c);
          });
          ASSERT_TRUE(value && range.low <= *value && *value <= range.high)
              << text.str() << " is " << *value << ", not in " << range.low << " to " << range.high;
        }
  }
}

TEST(ValueRange, KnowsSignsOfWhatIsRead) {
  const World world;
  EXPECT_LT(world.of("%signed[0]").low, 0);
  EXPECT_LT(world.of("min(%known[0], %signed[1])").low, 0);
  EXPECT_LT(world.of("floor_div(%signed[0] + %signed[1], 4)").low, 0);
  EXPECT_EQ(world.of("floor_div(%known[0], 3)").low, 1);
  EXPECT_EQ(world.of("%bytes[0] + %bytes[1]").high, 510);
  EXPECT_LT(world.of("seq_kv - seq_q").low, 0);
  EXPECT_EQ(world.of("max(seq_kv - seq_q, 0)").low, 0);
}

TEST(ValueRange, RowsLieInTheirSequence) {
  const World world;
  EXPECT_LE(world.of("q + seq_kv - seq_q").high, kMostLength + (1 << 15));
  EXPECT_TRUE(fitsInInt(world.kernel, parse("row_begin + 127 + seq_kv - seq_q - far + 1")));
  EXPECT_TRUE(fitsInInt(world.kernel, parse("c * (floor_div(q + seq_kv - seq_q, c) + 1)")));
  EXPECT_FALSE(fitsInInt(world.kernel, parse("far + far")));
  EXPECT_FALSE(fitsInInt(world.kernel, parse("far + 9223372036854775807")));
  EXPECT_FALSE(fitsInInt(world.kernel, parse("max(far, 1) * b")));
  EXPECT_FALSE(fitsInInt(world.kernel, parse("min(max(far, 1) * b, seq_kv)"))) << "a part of it does not";
}

} // namespace
