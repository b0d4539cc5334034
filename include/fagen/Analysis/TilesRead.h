// fagen: whether ops read the tiles that they mean.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// That accesses are in order (Hazards.h, Order.h) says nothing of what they are for: a copy of the wrong tile into a
// slot, in order with all others, is no race. So a kernel's runs are followed once more, with what lies where:
//
//   positions  who reads a ring at a position reads what was written for it: this position was the last one that
//              somebody wrote in the slot, none lies below 0, and none is copied that nobody reads
//   places     a copy says where in its matrix a tile begins, a mask and a store say where theirs does. A product sums
//              over the same elements of both operands, and adds no tile twice; maps and reductions take elements of
//              the same place. That is asked of attention, which weighs products by powers: other programs may put
//              elements together as they like
//
// Of roles that hand each other buffers the last write is a question of order, which Order.h answers; here it is asked
// that the position is written at all.
#pragma once

#include "fagen/IR/IR.h"

#include <string>
#include <vector>

namespace fagen {

/// An op that touches another tile than it means.
struct WrongTile {
  const ir::Op *op = nullptr;
  std::string message; ///< "math.mma_issue@7: reads position 3 of %k, which nothing has written"
  std::string steps;   ///< a run where it does: "key_tiles = 2"
};

struct TilesRead {
  std::string problem;          ///< not empty: the kernel cannot be followed
  std::vector<WrongTile> wrong; ///< one for each op
};

TilesRead findWrongTiles(const ir::Kernel &kernel);

} // namespace fagen
