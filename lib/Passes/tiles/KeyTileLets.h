// fagen: the lets of a kernel that count key tiles, as split-mask-loops makes them of a mask's bounds.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/Queries.h"

namespace fagen {

/// The lets that count key tiles; `first` and `left` where keys are bounded from below, `gap` of those that no row sees
/// from tile `gapBegin` on.
struct KeyTiles {
  std::string full, all, first = {}, left = {}, gapBegin = {}, gap = {};
  std::string judged = {}; ///< the judgement of tiles, where lets do not know them all
  bool isNeverWhole = false;
  bool isJudged() const { return !judged.empty(); }
  bool hasLeft() const { return !first.empty(); }
  bool hasGap() const { return !gap.empty(); }

  /// The key tile of that number where those of the gap are not counted.
  ir::Expr at(const ir::Expr &number) const;
};

/// Adds the lets of these bounds, for tiles of so many keys. That of all tiles takes the place of the loop's end.
KeyTiles addBounds(ir::Kernel &kernel, const ir::MaskBounds &bounds, const ir::Expr &keys, const ir::Expr &end);
/// Where lets do not know all tiles that rows see, those that they leave are judged when the kernel runs: by the ends
/// of each, or by what a launch before has found of it.
KeyTiles addJudgement(ir::Kernel &kernel, ir::ConstMask mask, const ir::MaskBounds &bounds, int64_t rows,
                      const ir::Expr &end, const ir::Buffer *sights);
/// The key tile of step j where the masked ones at the right come first, then those at the left.
ir::Expr tileFromRight(ir::Kernel &kernel, const KeyTiles &tiles, const ir::Expr &step);

} // namespace fagen
