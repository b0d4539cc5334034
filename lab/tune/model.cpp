// fagen: a cheap estimate of a candidate's time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "model.h"

#include <algorithm>
#include <cmath>

namespace fagen::lab::tune {

static constexpr double kStepClocks = 300;     ///< of barriers, waits and the softmax's serial part
static constexpr double kClocksPerCell = 0.05; ///< of a warp's products for each row, key and 64 columns
static constexpr double kSchedulers = 4;

// Of wgmma kernels: rates are of an SM and clock.
static constexpr double kGroupRows = 64;    ///< of a warp group
static constexpr double kProductRate = 32;  ///< keys times columns that 64 rows are multiplied with
static constexpr double kExpRate = 16;      ///< exp2
static constexpr double kCopyRate = 40;     ///< bytes from the L2
static constexpr double kCopyLatency = 800; ///< of a tile for which nothing else waits
static constexpr double kTurnClocks = 100;  ///< of a step whose products never pause
static constexpr double kChainClocks = 700; ///< of a step that exp2 fills: waits, sums, conversions
static constexpr double kTileClocks = 4500; ///< first scores, last P V and results (docs/notebooks/Performance.md)

/// Warp groups that compute side by side in the one CTA of an SM: clocks of a step as measured at
/// head dims 64, 128 and 256 (docs/notebooks/Performance.md).
static double warpGroupCost(const Space &space, const Point &point, const Shape &shape, Mask mask, int sms) {
  const double rows = space.number(point, "rows"), keys = space.number(point, "keys");
  const double columns = static_cast<double>(shape.headDimQK + shape.headDimV), groups = rows / kGroupRows;
  const bool isOverlapped = space.value(point, "overlap") == "intra" || space.value(point, "overlap") == "both";

  const double products = groups * keys * columns / kProductRate;
  const double exponentials = groups * kGroupRows * keys / kExpRate;
  const double copies = 2 * keys * columns / kCopyRate / space.numberOr(point, "cluster", 1);
  // Of one group: what it does beside exp2 comes on top, and its products where nothing runs under them.
  const double chain = exponentials + kChainClocks + (isOverlapped ? 0 : products / groups);
  const double wait = space.number(point, "stages") > 1 ? 0 : kCopyLatency;
  const double step = std::max({products + kTurnClocks, chain, copies}) + wait;

  // A group works on the keys that its own rows see, in whole tiles.
  const double seen = static_cast<double>(shape.seqKv) * (mask == Mask::Causal ? 0.5 : 1);
  const double steps = seen / keys + (mask == Mask::Causal ? 0.5 : 0);
  const double tiles =
      std::ceil(static_cast<double>(shape.seqQ) / rows) * static_cast<double>(shape.heads * shape.batch);
  const bool isWhole = space.value(point, "grid") == "tiles"; // CTAs come in waves
  const double waves = std::max(1.0, isWhole ? std::ceil(tiles / sms) : tiles / sms);
  return waves * (steps * step + kTileClocks);
}

double modelCost(const Space &space, const Point &point, const Shape &shape, Mask mask, int sms) {
  if (space.value(point, "copy") == "tma")
    return warpGroupCost(space, point, shape, mask, sms);
  double rows = space.number(point, "rows"), keys = space.number(point, "keys");
  double warps = space.number(point, "warps"), stages = space.number(point, "stages");
  const Estimate &estimate = space.estimates.at(point);
  double resident = std::max(1, estimate.ctasPerSm);

  double tiles = static_cast<double>((shape.seqQ + static_cast<int64_t>(rows) - 1) / static_cast<int64_t>(rows));
  double ctas = tiles * static_cast<double>(shape.heads * shape.batch);
  double steps = static_cast<double>((shape.seqKv + static_cast<int64_t>(keys) - 1) / static_cast<int64_t>(keys));
  if (mask == Mask::Causal)
    steps = std::max(1.0, steps / 2);

  double columns = static_cast<double>(shape.headDimQK + shape.headDimV) / 64;
  double products = rows * keys * columns * kClocksPerCell / std::min(warps, kSchedulers);
  // Each CTA copies all of K and V: short tiles of rows copy more for the same products.
  double copies = keys * columns * (space.value(point, "copy") == "cp_async" ? 1 : 2);
  double latency = kStepClocks / (stages > 1 ? 1.5 : 1);
  double conflicts = space.value(point, "swizzle") == "none" ? 1.6 : 1;
  double operands = space.value(point, "q_in") == "registers" ? 0.95 : 1;
  double spilled = estimate.fillsRegisters() ? 1.3 : 1;

  double perSm = ctas / sms;
  double together = std::min(resident, std::max(1.0, perSm));
  // What one CTA waits for, the others fill with products; these share the SM.
  double step = std::max(products * together * conflicts * operands + copies, products * conflicts + latency + copies);
  double waves = std::max(1.0, perSm / together);
  return waves * (steps * step * spilled + 2 * latency);
}

} // namespace fagen::lab::tune
