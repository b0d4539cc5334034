// fagen: what a pass needs of a kernel beyond its phase.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pass that rewrites one shape of kernel asks for that shape before it changes anything:
//
//   if (!shape.needs(loop, "a loop in role load") || !shape.needs(..., "two copies in it", loop->location))
//     return false; // the kernel stays as it is
//
// The first need that is not met is an error. In IR from text it is the user's mistake: passes ran out of order, or the
// kernel is of a kind that the pass does not know. In a kernel lowered from a spec it is our own.
#pragma once

#include "fagen/Passes/Passes.h"

namespace fagen {

class ShapeCheck {
public:
  ShapeCheck(const ir::Kernel &kernel, PassContext &context, llvm::StringLiteral pass)
      : kernel(kernel), context(context), pass(pass) {}

  /// Whether it holds; reports `what` as missing if not, at the location or else at the kernel.
  bool needs(bool holds, const llvm::Twine &what, const Location &location = {});

private:
  const ir::Kernel &kernel;
  PassContext &context;
  const llvm::StringLiteral pass;
};

/// The first op of the block itself that `isWanted`; null if there is none.
const ir::Op *firstOf(const ir::Block &block, llvm::function_ref<bool(const ir::Op &)> isWanted);
const ir::Op *firstOf(const ir::Block &block, ir::OpKind kind);

/// Whether the second loop begins where the first one ends, and goes on with its copies.
bool goesOnCopying(const ir::Op &first, const ir::Op &second);

/// How many ops of the kind the block has, those in nested blocks included.
unsigned countOf(const ir::Block &block, ir::OpKind kind);

} // namespace fagen
