// fagen: baselines as far as they go without a GPU: names, sizes, the text of the softmax kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/kernels/kernel_text.h"
#include "lab/time/baselines/cublas.h"
#include "lab/time/baselines/cublas_library.h"
#include "lab/time/baselines/names.h"
#include "runtime/src/compile/nvrtc.h"

#include <gtest/gtest.h>

using namespace fagen;
using namespace fagen::lab;

namespace {

TEST(Baselines, names) {
  EXPECT_NO_THROW(requireBaseline("sdpa:math"));
  EXPECT_NO_THROW(requireBaseline("stream"));
  EXPECT_NO_THROW(requireBaseline("kernel:anything"));
  EXPECT_THROW(requireBaseline("kernel:"), UserError);
  EXPECT_THROW(requireBaseline("sdpa:fast"), UserError);
  EXPECT_EQ(baselineMembers("sdpa").size(), 4u);
  EXPECT_EQ(baselineMembers("sdpa:math"), std::vector<std::string>{"sdpa:math"});
  EXPECT_EQ(baselineVariant("kernel:a_b"), "a_b");
  EXPECT_EQ(baselineVariant("sdpa"), "");
  for (const char *name : {"cublas-unfused", "cublas-gemm", "stream"})
    EXPECT_TRUE(makeBaseline(name)) << name;
  EXPECT_FALSE(makeBaseline("sdpa"));
}

TEST(Baselines, theSquareHasAboutAsManyFlops) {
  Shape mission = parseShape("mission");
  EXPECT_EQ(gemmSide(mission, Mask::None), 640);
  EXPECT_EQ(gemmSide(mission, Mask::Causal), 512);
  EXPECT_EQ(gemmSide(parseShape("1,1,1,8,8,16"), Mask::None), 128);
}

TEST(Baselines, everyFunctionOfCublasIsFound) {
  std::string reason;
  if (const Cublas *library = cublas(reason)) {
    EXPECT_TRUE(library->gemmStridedBatched);
    EXPECT_STREQ(library->statusString(0), "success");
    return;
  }
  EXPECT_NE(reason.find("is not found"), std::string::npos) << reason;
  GTEST_SKIP() << reason;
}

TEST(Baselines, theSoftmaxKernelCompiles) {
  if (nvrtcVersion().empty())
    GTEST_SKIP() << "NVRTC is not here";
  for (const char *flag : {"-arch=sm_80", "-arch=sm_90"}) {
    std::string binary;
    EXPECT_EQ(nvrtcCompile(kSoftmaxText, "softmax.cu", {flag, "-std=c++17", "-default-device"}, false, binary),
              FAGEN_OK)
        << fagen_last_error();
    EXPECT_NE(binary.find("softmaxRowsBf16"), std::string::npos);
  }
}

} // namespace
