// fagen: whether IR is well formed, and keeps what its phase promises.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checked at any phase: ops have the operands and attributes that Ops.td lists, of the right space, type and range;
// rings are named with a position and other buffers without; expressions use known names only; loop variables do not
// hide anything; shapes of products and copies fit; warps, threads and constants agree.
// Refused at any phase, for no later phase could do it: masks that bound keys from below; bulk copies that end before
// their tensor does; more run-time values that steer than analyses can try.
//   from split on      a loop named "interior" masks nothing
//   from allocated on  every shared buffer lies 16-byte aligned inside sharedBytes, apart from all it does not overlay
//   from placed on     no place op is left; every barrier and wait has its own site, and the ledger lists just these
// Whether barriers order what they must is verify-barriers' question, not this one's.
#pragma once

#include "fagen/IR/IR.h"
#include "fagen/IR/RunValues.h"

#include "llvm/ADT/Twine.h"

namespace fagen::ir {

/// The largest value that may be read from memory: positions and rows stay far from the end of an int.
inline constexpr int64_t kMaxReadValue = int64_t(1) << 30;

/// Called for each defect; the location may be unknown.
using DefectHandler = llvm::function_ref<void(const Location &location, const llvm::Twine &message)>;

/// Whether no defect was found.
bool verify(const Kernel &kernel, DefectHandler report);
bool verify(const Program &program, DefectHandler report);

} // namespace fagen::ir
