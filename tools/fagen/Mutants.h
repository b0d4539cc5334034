// fagen: --emit=mutants: what becomes of the kernels when a barrier or wait is changed, for fagen-run mutate.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "Compile.h"

namespace fagen {

/// JSON: for each kernel of each launch the mutants of all sites, with the analysis's verdict. Kernels are judged side
/// by side; the text does not depend on how.
std::string emitMutants(llvm::ArrayRef<PlannedVariant> sources);

} // namespace fagen
