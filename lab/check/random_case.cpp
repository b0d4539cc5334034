// fagen: a random problem that a row may take.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/support/random.h"
#include "soak.h"

#include <algorithm>

namespace fagen::lab {

namespace {

constexpr int64_t kNoKeysOneIn = 64, kNoLseOneIn = 8, kAtEdgeOneIn = 3, kSquareOneIn = 2;

/// Random numbers of one launch.
class Draws {
public:
  Draws(uint64_t seed, uint32_t index) : seed(seed), index(index) {}
  int64_t below(int64_t limit) {
    if (used % 4 == 0)
      words = philox({index, used / 4, 0, 2}, seed);
    return words[used++ % 4] % limit;
  }
  bool oneIn(int64_t count) { return below(count) == 0; }

private:
  uint64_t seed;
  uint32_t index, used = 0;
  std::array<uint32_t, 4> words{};
};

/// As many short lengths as long ones, and many next to an edge of a tile.
int64_t drawLength(Draws &draws, int64_t tile, int64_t limit) {
  if (draws.oneIn(kAtEdgeOneIn))
    return std::clamp<int64_t>(tile * (1 + draws.below(std::max<int64_t>(1, limit / tile))) + draws.below(3) - 1, 1,
                               limit);
  int64_t below = limit;
  for (int64_t halvings = draws.below(4); halvings && below > 8; --halvings)
    below /= 2;
  return 1 + draws.below(below);
}

} // namespace

Case randomCase(const fagen_row &row, Case c, const SoakLimits &limits, uint64_t seed, uint32_t index) {
  Draws draws(seed, index);
  c.lse = row.lse != 0 && !draws.oneIn(kNoLseOneIn);
  c.layout = draws.oneIn(2) ? Layout::Bshd : Layout::Bhsd;
  Shape &s = c.shape;
  s.batch = 1 + draws.below(limits.batch);
  s.kvHeads = 1 + draws.below(limits.heads);
  s.heads = s.kvHeads * (1 + draws.below(std::max<int64_t>(1, limits.heads / s.kvHeads)));
  s.seqQ = drawLength(draws, row.tile_rows, limits.rows);
  s.seqKv = draws.oneIn(kNoKeysOneIn)   ? 0
            : draws.oneIn(kSquareOneIn) ? s.seqQ
                                        : drawLength(draws, row.tile_keys, limits.rows);
  return c;
}

} // namespace fagen::lab
