// fagen: the CMakeLists.txt of a kernel's directory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Emit/Plan.h"

namespace fagen {

/// Builds the directory as a library, fagen::kernels::<kernel>; alone with an installed fagen, or as a sub-directory.
std::string emitCMakeFile(const KernelPlan &plan);

} // namespace fagen
