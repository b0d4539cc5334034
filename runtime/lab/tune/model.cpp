// fagen: a cheap estimate of a candidate's time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tune/model.h"

#include <algorithm>

namespace fagen::lab::tune {

static constexpr double kStepClocks = 300;     ///< of barriers, waits and the softmax's serial part
static constexpr double kClocksPerCell = 0.05; ///< of a warp's products for each row, key and 64 columns
static constexpr double kSchedulers = 4;
static constexpr int kRegistersOfThread = 255;

double modelCost(const Space &space, const Point &point, const Shape &shape, Mask mask, int sms) {
  double rows = space.number(point, "rows"), keys = space.number(point, "keys");
  double warps = space.number(point, "warps"), stages = space.number(point, "stages");
  auto found = space.estimates.find(point);
  Estimate estimate = found == space.estimates.end() ? Estimate{128, 1, 0} : found->second;
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
  double spilled = estimate.registers >= kRegistersOfThread ? 1.3 : 1;

  double perSm = ctas / sms;
  double together = std::min(resident, std::max(1.0, perSm));
  // What one CTA waits for, the others fill with products; these share the SM.
  double step = std::max(products * together * conflicts * operands + copies, products * conflicts + latency + copies);
  double waves = std::max(1.0, perSm / together);
  return waves * (steps * step * spilled + 2 * latency);
}

} // namespace fagen::lab::tune
