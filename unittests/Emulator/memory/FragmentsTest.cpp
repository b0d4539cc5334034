// fagen: what a kernel computes from registers that nobody wrote is found where it leaves them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Kernels.h"

namespace fagen::emulator::fragmentsTest {
namespace {

const std::string kFile = "fragments.cu";

Report run(const std::string &symbol, int count) {
  const std::vector<unsigned> in(1);
  std::vector<unsigned> out(16 * 16 / 2);
  return launch({.file = kFile, .symbol = symbol, .sharedBytes = 512 + 2048, .count = count}, in, out);
}

struct Use {
  const char *symbol; ///< and mark
  const char *what;
  int thread;
};

class Fragments : public testing::TestWithParam<Use> {};

TEST_P(Fragments, UnwrittenElementsAreFoundWhereTheyAreUsed) {
  const auto [symbol, what, thread] = GetParam();
  EXPECT_TRUE(run(symbol, 1).ok) << text(run(symbol, 1));
  const Report report = run(symbol, 0);
  ASSERT_NO_FATAL_FAILURE(expectOnly(report, "uninitialised", kFile, symbol));
  EXPECT_EQ(report.findings[0].thread, thread);
  EXPECT_NE(report.findings[0].message.find(std::string(what) + " what comes of registers that nobody wrote"),
            std::string::npos)
      << text(report);
}

INSTANTIATE_TEST_SUITE_P(All, Fragments,
                         testing::Values(Use{"store", "stores to global memory", 0}, Use{"accumulator", "gives mma", 0},
                                         Use{"operand", "gives mma", 0}, Use{"one_word", "gives mma", 6},
                                         Use{"sums", "gives shuffle_xor", 0}, Use{"maxima", "gives shuffle_xor", 0},
                                         Use{"lanes", "stores to shared memory", 31},
                                         Use{"columns", "stores to global memory", 0},
                                         Use{"wmma_operand", "gives wmma_mma", 0}),
                         [](const auto &info) { return std::string(info.param.symbol); });

} // namespace
} // namespace fagen::emulator::fragmentsTest
