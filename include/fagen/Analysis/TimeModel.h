// fagen: how long a kernel will take on a GPU, from the ops of its IR (docs/internals/Model.md).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Analysis/Chain.h"
#include "fagen/Target/Target.h"

#include <optional>
#include <string>
#include <vector>

namespace fagen::model {

struct Shape {
  int64_t batch = 0, heads = 0, kvHeads = 0, seqQ = 0, seqKv = 0, headDim = 0;
  std::string str() const; ///< as parseShape reads it
};
/// b,h,hkv,sq,sk,d, as fagen-run writes it.
std::optional<Shape> parseShape(llvm::StringRef text);

/// A loop, or all ops outside of loops, in a CTA.
struct Section {
  std::string name;
  Work work;
  Clocks clocks;
  std::vector<RingUse> rings;
  bool inTurns = false;
  double steps = 0; ///< of a tile of query rows, on average; 0: once for all tiles that a CTA takes
  double together = 0;
};

struct Prediction {
  unsigned registers = 0, ctasPerSm = 0;
  const char *occupancyLimit = "";
  uint64_t sharedBytes = 0;
  uint64_t ctas = 0;
  unsigned resident = 0; ///< CTAs an SM while the grid is large enough
  double waves = 0;      ///< CTAs / (SMs * ctasPerSm)
  double tail = 0;       ///< share of the last wave's places that are taken
  std::vector<Section> sections;
  double dramMicroseconds = 0;
  double microseconds = 0;
};

/// What was measured of the model's ranking; only a recorded one counts (docs/internals/Model.md).
struct Ranking {
  double correlation = 0; ///< Spearman's, the least at a shape
  unsigned variants = 0;
  bool mayPrune() const { return correlation >= 0.7 && variants >= 200; }
};
Ranking rankingOf(const GpuRates &gpu, bool isCausal);
/// Where it may prune: candidates of one problem whose time is more than so many times the least may be left out.
constexpr double kPruneOver = 1.5;

/// From where shared memory is allocated on; barriers that are not placed yet are not counted. None before that, for
/// products whose results no register keeps, for kernels in which several roles multiply, for those that do
/// not fit or that need a copy engine where there is none, for grids that share out the keys of a tile, and for more
/// than 2^24 tiles.
std::optional<Prediction> predict(const ir::Kernel &kernel, const GpuRates &gpu, const TargetInfo &limits,
                                  const Shape &shape);

} // namespace fagen::model
