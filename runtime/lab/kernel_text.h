// fagen: the reference kernels' source, embedded at build time from kernels/.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fagen::lab {

extern const char *const kNumericText;   ///< kernels/numeric.h
extern const char *const kReferenceText; ///< kernels/reference.cu

} // namespace fagen::lab
