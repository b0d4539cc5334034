// fagen: what tiles and fragments are to the ops of a kernel: from it follows by which constants the text measures
// them. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/Measures.h"
#include "fagen/IR/OpClasses.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace fagen {

/// Of several uses the first one here.
enum class TileUse : uint8_t {
  Left,     ///< operand of a product
  Right,    ///< operand of a product
  Sum,      ///< of products
  Held,     ///< the first columns of a left operand
  KeyWarps, ///< results of warps that have the same rows
  Staged,   ///< rows of results on their way to memory
  Result,   ///< rows that are stored
  None
};

class TileUses {
public:
  explicit TileUses(const ir::Kernel &kernel);

  TileUse of(const ir::Buffer &buffer) const;
  /// Whether it is this in a product of this form.
  bool is(const ir::Buffer &buffer, TileUse use, ir::MmaForm form) const;
  /// Whether the op is a product whose results powers are made of: scores. Those powers, maybe converted, are the left
  /// operand of another product, which may use the same buffer.
  bool isOfScores(const ir::Op &product) const;
  /// A ring of right operands, or an mbarrier of one; of rings of left operands it is false.
  bool isOfKeys(const ir::Buffer &ring) const;
  /// What says how many slots such a ring has.
  ir::Measure slotsOf(const ir::Buffer &ring) const {
    return isOfKeys(ring) ? ir::Measure::Stages : ir::Measure::QuerySlots;
  }

private:
  struct Found {
    TileUse use = TileUse::None;
    ir::MmaForm form = ir::MmaForm::Abt;
  };
  void add(const ir::Buffer *buffer, TileUse use, ir::MmaForm form = ir::MmaForm::Abt);

  llvm::DenseMap<const ir::Buffer *, Found> found;
  llvm::DenseSet<const ir::Buffer *> scores, weights;             ///< what powers are made of; those powers
  llvm::DenseMap<const ir::Buffer *, const ir::Buffer *> guarded; ///< by each mbarrier
};

} // namespace fagen
