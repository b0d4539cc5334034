// fagen: numbers of a spec that single passes are asked for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"
#include "fagen/Spec/Options.h"

namespace fagen {

/// The constant by which the kernel is asked for the option (PassNumber of SpecOptions.td); null where it is not.
const ir::Constant *askedNumber(const ir::Kernel &kernel, OptionKey key);

} // namespace fagen
