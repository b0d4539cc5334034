// fagen: synthetic tiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "micro.h"

#include <algorithm>

namespace fagen::lab::tune {

static constexpr int64_t kRows = 256;     ///< of a head
static constexpr int64_t kRowsOfSm = 512; ///< two waves of the largest tiles
static constexpr int64_t kFewKeys = 256, kMoreKeys = 512;

MicroProblem microProblem(const Case &problem, int sms) {
  MicroProblem micro{problem, problem, 1};
  const Shape &whole = problem.shape;
  Shape &shape = micro.shorter.shape;
  shape.seqQ = std::min(whole.seqQ, kRows);
  shape.batch = 1;
  int64_t most = std::max<int64_t>(1, sms * kRowsOfSm / std::max<int64_t>(1, shape.seqQ));
  int64_t tilesOfRows = whole.batch * whole.heads * ((whole.seqQ + shape.seqQ - 1) / std::max<int64_t>(1, shape.seqQ));
  shape.heads = std::min(tilesOfRows, most);
  shape.kvHeads = 1;
  // Causal rows see all keys but those of their own block at least.
  shape.seqKv = problem.mask == Mask::Causal ? std::max(kFewKeys, shape.seqQ) : kFewKeys;
  micro.longer.shape = shape;
  micro.longer.shape.seqKv += kMoreKeys;
  micro.times = static_cast<double>(tilesOfRows) / static_cast<double>(shape.heads);
  return micro;
}

static double meanKeys(const Shape &shape, Mask mask) {
  double keys = static_cast<double>(shape.seqKv), rows = static_cast<double>(shape.seqQ);
  return mask == Mask::None ? keys : std::max(1.0, rows <= keys ? keys - rows / 2 : keys * keys / (2 * rows));
}

double predictFromMicro(const MicroProblem &micro, const Case &problem, double shorterMicroseconds,
                        double longerMicroseconds) {
  double few = meanKeys(micro.shorter.shape, problem.mask), more = meanKeys(micro.longer.shape, problem.mask);
  double step = std::max(0.0, longerMicroseconds - shorterMicroseconds) / (more - few);
  double fixed = std::max(0.0, shorterMicroseconds - step * few);
  return micro.times * (fixed + step * meanKeys(problem.shape, problem.mask));
}

} // namespace fagen::lab::tune
