// fagen: which stage of a kernel an op belongs to, for instrumented kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

#include <fagen/device/trace.h>

#include <string>

namespace fagen {

/// Every op that is emitted has one.
device::Stage stageOf(const ir::Op &op);

/// Whether its ops only wait: nothing is interleaved with them.
bool isWait(device::Stage stage);

/// The enumerator, as generated text names it: "kLoadWait".
std::string enumeratorOf(device::Stage stage);

} // namespace fagen
