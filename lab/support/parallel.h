// fagen: a loop spread over the machine's threads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <functional>

namespace fagen::lab {

/// Calls body(begin, end) on disjoint ranges that cover [0, count), on as many threads as there are cores for this
/// process, none smaller than `grain` but the last. The first exception of a body is thrown again here.
void parallelFor(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)> &body);

} // namespace fagen::lab
