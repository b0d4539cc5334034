// fagen: what tiles are to the products of a kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/OpClasses.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace fagen {

/// Of several uses the first one here.
enum class TileUse : uint8_t {
  Left,  ///< operand of a product
  Right, ///< operand of a product
  None
};

class TileUses {
public:
  explicit TileUses(const ir::Kernel &kernel);

  TileUse of(const ir::Buffer &buffer) const;
  /// Whether the op is a product whose results powers are made of: scores. Those powers, maybe converted, are the left
  /// operand of another product, which may use the same buffer.
  bool isOfScores(const ir::Op &product) const;
  /// A ring of right operands, or an mbarrier of one; of rings of left operands it is false.
  bool isOfKeys(const ir::Buffer &ring) const;

private:
  void add(const ir::Buffer *buffer, TileUse use);

  llvm::DenseMap<const ir::Buffer *, TileUse> found;
  llvm::DenseSet<const ir::Buffer *> scores, weights;             ///< what powers are made of; those powers
  llvm::DenseMap<const ir::Buffer *, const ir::Buffer *> guarded; ///< by each mbarrier
};

} // namespace fagen
