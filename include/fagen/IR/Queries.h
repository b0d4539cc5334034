// fagen: questions about the structure of a kernel, which passes and analyses ask instead of names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/OpClasses.h"

namespace fagen::ir {

/// Whether the copy engine does it.
bool isBulkCopy(const Op &op);
/// Whether each thread's part is complete when a copy_wait of that thread says so.
bool isThreadAsyncCopy(const Op &op);

/// Whether the op arrives, or waits, at the mbarrier.
bool isArrivalAt(const Op &op, const Buffer *bar);
bool isWaitAt(const Op &op, const Buffer *bar);

/// The number behind all named barriers that ops of the kernel use; 0 is the CTA's.
int64_t firstFreeBarrier(const Kernel &kernel);

/// Who does what the op says; the role where it does not say.
Actor actorOf(const Op &op);

} // namespace fagen::ir
