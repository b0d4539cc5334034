// fagen: GPUs, for whoever launches on behalf of a framework.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/fagen.h>

namespace fagen::python {

/// The runtime's device of a CUDA ordinal, made once. Null where it fails, with the reason in `error`, which lives on.
fagen_device *deviceOf(int ordinal, const char *&error);

} // namespace fagen::python
