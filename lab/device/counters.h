// fagen: counters that kernels keep in their workspace, and leave as they found them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "device.h"

namespace fagen::lab {

/// A workspace as bad as it may be: zeros where the choice needs them, else what is not a number.
std::vector<char> makeWorkspace(const fagen_choice &choice);

/// Whether the row's workspace is one counter, which every launch leaves at 0.
bool isCounter(const fagen_row &row);

/// A failure where it is not what such a row promises; `workspace` is what a launch left.
std::vector<Failure> checkCounter(const fagen_row &row, const std::vector<char> &workspace);

} // namespace fagen::lab
