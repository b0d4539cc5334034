// fagen: whether two tensors share memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shim.h"

namespace fagen::torch {

/// Whether an element of one tensor lies where one of the other does; also where that takes too long to tell, as of
/// strides that nothing has in practice. `bytes` are those of an element.
bool mayOverlap(const View &a, int64_t bytesOfA, const View &b, int64_t bytesOfB);

} // namespace fagen::torch
