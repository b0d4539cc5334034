// fagen: --emit=spec: the resolved spec as text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Spec/Spec.h"

#include "llvm/Support/raw_ostream.h"

namespace fagen {

/// Every kernel with every variant: each key with its value and where it was set (or that it is the default), the warp
/// layout, the shared memory, the tune choices; then select and require. The same spec gives the same text.
void printSpec(const SpecFile &file, llvm::raw_ostream &os);

/// The variants of all files as one JSON array: each with its schedule and its tune choices, the values of their keys
/// and what they take of an SM, by their lowered kernels.
void printSpecJson(llvm::ArrayRef<SpecFile> files, llvm::raw_ostream &os);

} // namespace fagen
