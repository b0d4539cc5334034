// fagen: what kernels compute with sizes at the limit fits their integers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All of it is evaluated by the compiler, which refuses an overflow: the expressions of the generated texts and of the
// device library, with everything that they add to a size at its largest.
#include "dispatch.h"
#include "problem.h"

#include <fagen/device/divisor.h>
#include <fagen/device/tile/integer.h>

#include <gtest/gtest.h>

using namespace fagen;
using namespace fagen::device;

namespace {

constexpr int kMost = int(kMaxCount);
constexpr int kTile = 65536;         // rows or keys (fagen_table_check)
constexpr int kCluster = 8;          // CTAs
constexpr int kStages = 64;          // more than shared memory holds
constexpr int kCtas = 8192;          // of a persistent grid
constexpr int kKeysAhead = 64 * 512; // what stages of real tiles hold

/// The first row of the last tile, with tiles after it for the cluster; and a row in it.
constexpr int kLastRow = (kMost - 1) / kTile * kTile + kCluster * kTile + kTile - 1;

static_assert(ceil_div(kMost, kTile) >= 1 && floor_div(max(kMost, 0), 1) == kMost);
static_assert((kMost + kTile * kCluster - 1) / (kTile * kCluster) * kCluster > 0);
// The keys that a causal tile sees, and the mask's: row_begin + seq_kv - seq_q + tile, from left to right.
static_assert(ceil_div(max(min(kMost, kLastRow + kMost - 1 + kTile), 0), 16) >= 1);
static_assert(kLastRow + kMost - 0 + 1 > kMost && kLastRow + 0 - kMost < kTile * 16);
// Keys of tiles that copies reach for ahead of the products.
static_assert((ceil_div(kMost, 16) + kStages) * 16 > kMost && kMost + kKeysAhead > kMost);
// The tile that a persistent CTA asks for after its last one, and tickets.
static_assert(kMost + kCtas > kMost && kMost - 1 - 0 >= 0);
// Ring positions: seven times the share, with the slots that a wait looks back.
static_assert(7 * kMaxKeyTilesOfCta + kMost / 16 + kStages < INT32_MAX);
// Twice the keys, for the heads that take turns, is unsigned.
static_assert(2u * kMost - 1 > unsigned(kMost));
// Rows of merged splits and the bytes of their parts.
static_assert(kMaxCount * 4 * (4095 + 4) * 16 > 0);

TEST(Limits, DivisorsHoldAtTheLimit) {
  for (int divisor : {1, 2, 3, 7, 128, 65537, kMost - 1, kMost})
    for (int a : {0, 1, kMost - 1, kMost, kLastRow, 2 * kMost})
      EXPECT_EQ(floor_div(a, make_divisor(divisor)), a / divisor) << a << " / " << divisor;
}

} // namespace
