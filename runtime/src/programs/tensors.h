// fagen: strides and elements of a program's tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "bind.h"

namespace fagen {

/// Of a tensor whose extents are set.
int64_t elementsOf(const fagen_recipe_tensor &tensor, const BoundTensor &shaped);

/// The caller's strides, or dense ones where `given` is null or has none; all are set, also those that nothing uses.
/// INVALID for negative ones, others than dense ones where the tensor is not strided, and results that overlap;
/// MISALIGNED.
fagen_status setStrides(const char *program, const fagen_recipe_tensor &tensor, const fagen_named_tensor *given,
                        bool isExplicit, BoundTensor &shaped);

} // namespace fagen
