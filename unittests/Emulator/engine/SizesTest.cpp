// fagen: a generated kernel at the largest size that the runtime lets through.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Kernels.h"

#include <cmath>
#include <fagen/device/params.h>

namespace fagen::emulator::sizesTest {
namespace {

constexpr int kMost = 1000000000, kHeadDim = 64, kTileRows = 128, kKeys = 64;
constexpr unsigned short kHalfOne = 0x3c00;

/// f16 bits of a small whole number.
unsigned short halfOf(int value) {
  if (value == 0)
    return 0;
  const int exponent = std::ilogb(value);
  return static_cast<unsigned short>((exponent + 15) << 10 | ((value << 10 >> exponent) & 1023));
}

// The last tile of a head of 10^9 rows, which comes first: it sees up to 64 keys. Row strides of 0 make Q one row; of O
// and LSE only the tile is there.
TEST(Sizes, LastTileOfABillionRows) {
  std::string error;
  const std::unique_ptr<Module> module =
      Module::compile(FAGEN_GENERATED "/l4_fp16/sm_89/l4_fp16_prefill_f16_d64_causal.cu", error);
  ASSERT_TRUE(module) << error;
  std::vector<unsigned short> q(kHeadDim, 0), k(kKeys * kHeadDim, kHalfOne), v(k.size()),
      o(kTileRows * kHeadDim, 0xffff);
  for (int i = 0; i < kKeys * kHeadDim; ++i)
    v[i] = halfOf(2 * (i / kHeadDim)); // row j of V is 2 j
  std::vector<float> lse(kTileRows, NAN);
  constexpr long long kFirst = kMost - kTileRows;
  device::AttentionParams params = {};
  params.q = q.data(), params.k = k.data(), params.v = v.data();
  params.o = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(o.data()) - kFirst * kHeadDim * 2);
  params.lse = reinterpret_cast<float *>(reinterpret_cast<uintptr_t>(lse.data()) - kFirst * sizeof(float));
  params.k_stride[2] = params.v_stride[2] = params.o_stride[2] = kHeadDim;
  params.batch = params.heads = params.kv_heads = params.heads_per_kv = 1;
  params.by_heads_per_kv = device::make_divisor(1);
  params.seq_q = kMost, params.seq_kv = kKeys;
  params.scale = 0.125f, params.scale_log2 = 0.125f * 1.44269504f, params.splits = 1;
  const Launch launch = {"fagen_l4_fp16_prefill_f16_d64_causal_sm_89",
                         1,
                         128,
                         99 * 1024, // all that the target has
                         {{q.data(), 2 * q.size(), false, "q"},
                          {k.data(), 2 * k.size(), false, "k"},
                          {v.data(), 2 * v.size(), false, "v"},
                          {o.data(), 2 * o.size(), true, "o"},
                          {lse.data(), 4 * lse.size(), true, "lse"}}};
  const Report report = module->launch(launch, &params, sizeof(params), {});
  ASSERT_TRUE(report.ok) << text(report);
  for (int row = 0; row < kTileRows; ++row) {
    const int seen = row + kKeys - kTileRows + 1; // the mean of 0, 2, ... 2 (seen - 1) is seen - 1
    EXPECT_EQ(o[row * kHeadDim], seen > 0 ? halfOf(seen - 1) : 0) << row;
    if (seen > 0)
      EXPECT_NEAR(lse[row], std::log(seen), 1e-5) << row;
    else
      EXPECT_EQ(lse[row], -INFINITY) << row;
  }
}

} // namespace
} // namespace fagen::emulator::sizesTest
