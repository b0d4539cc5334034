// fagen: which stage of a kernel an op belongs to, for instrumented kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

#include <fagen/device/trace.h>

#include <string>
#include <vector>

namespace fagen {

/// Every op of a block that is emitted has one. What only orders products or frees a slot goes with its neighbours, a
/// wait for products with the newest that it completes.
std::vector<device::Stage> stagesOf(const ir::Kernel &kernel, llvm::ArrayRef<const ir::Op *> ops);

/// Whether its ops only wait: nothing is interleaved with them.
bool isWait(device::Stage stage);

/// The enumerator, as generated text names it: "kLoadWait".
std::string enumeratorOf(device::Stage stage);

} // namespace fagen
