// fagen: which operands the device library has functions for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

namespace fagen {

/// What an op of a kernel with parameters of its own has that no function of the device library takes, or its target
/// lacks: "%x is ...; ..."; empty where there is a text for it. The op is one that has text at all; `isAlone`: as a
/// function of its own, not as one of several.
std::string whyNoText(const ir::Kernel &kernel, const ir::Role &role, const ir::Op &op, bool isAlone);

} // namespace fagen
