// fagen: whether integers keep what the caller promises of them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "plan.h"

namespace fagen {
struct BoundCall;
}

namespace fagen::lab {

/// UserError with tensor, index and value where an element of a buffer that is only read breaks a promise: its range,
/// "ascending" along the last dimension, or "distinct". `bytes` are the buffer's, dense.
void requirePromises(const ProgramBuffer &buffer, const std::vector<int64_t> &shape,
                     const std::vector<unsigned char> &bytes);

/// Likewise of all tensors of a call, in memory of the host.
void requirePromises(const BoundCall &bound);

} // namespace fagen::lab
