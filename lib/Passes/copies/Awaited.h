// fagen: what a role copies and nobody has awaited yet, and who reads it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

#include "llvm/ADT/SmallPtrSet.h"

namespace fagen {

using OpenCopies = llvm::SmallPtrSet<const ir::Buffer *, 4>; ///< the buffers that copies fill

/// What the op copies, or ops in its body.
void addCopied(const ir::Op &op, OpenCopies &open);

/// Whether an operand of it is the buffer, other than what a copy fills.
bool takes(const ir::Op &op, const ir::Buffer *buffer);

/// Whether the op, or one in its body, reads of what is open.
bool readsAny(const ir::Op &op, const OpenCopies &open);

/// Whether an op before the loops of a role's body reads what was copied before them.
bool readsEarly(const ir::Block &body);

/// Whether an op that stands in no loop reads what a copy brings. Ops that are taken out, null, do not count.
bool isReadOutside(const ir::Block &body, const ir::Buffer *copied);

} // namespace fagen
