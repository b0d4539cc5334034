// fagen: which element of a fragment a map is at, and the functions that expressions call.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Kernels.h"

#include <cmath>

namespace fagen::emulator::mapTest {
namespace {

std::vector<float> run(const char *symbol, size_t count) {
  std::vector<float> in(1), out(count);
  const Report report = launch(KernelRun{.file = "map.cu", .symbol = symbol}, in, out);
  EXPECT_TRUE(report.ok) << text(report);
  return out;
}

TEST(Map, KnowsThePlaceOfEachElementAndItsRowsValue) {
  const std::vector<float> out = run("places", 32 * 32);
  for (int r = 0; r < 32; ++r)
    for (int c = 0; c < 32; ++c)
      EXPECT_EQ(out[r * 32 + c], float((100 * (r + 3) + c + 5) * (r + 3))) << r << ", " << c;
}

TEST(Map, FunctionsOfExpressions) {
  const std::vector<float> out = run("functions", 7);
  const double expected[] = {std::exp2(-1.5), 3, std::tanh(0.5), 2.5, 3, 1, -1};
  for (int i = 0; i < 7; ++i)
    EXPECT_NEAR(out[i], expected[i], 1e-3) << i;
}

} // namespace
} // namespace fagen::emulator::mapTest
