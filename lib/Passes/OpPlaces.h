// fagen: where each op of a kernel stands.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/OpClasses.h"

#include "llvm/ADT/DenseMap.h"

namespace fagen {

/// Valid until ops are added or moved. What warps vote on stands where the vote does, where it may happen.
class OpPlaces {
public:
  struct Place {
    ir::Block *block = nullptr;
    size_t index = 0;
    ir::Op *around = nullptr; ///< the op with that body; null: the role's
  };

  explicit OpPlaces(ir::Kernel &kernel);
  const Place &of(const ir::Op &op) const { return places.find(&op)->second; }
  /// The op, or the vote that it is in.
  ir::Op *standing(const ir::Op &op) const { return of(op).block->ops[of(op).index].get(); }

private:
  void add(ir::Block &block, ir::Op *around);

  llvm::DenseMap<const ir::Op *, Place> places;
};

} // namespace fagen
