// fagen: reads K and V and does nothing with them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "baseline.h"

namespace fagen::lab {

/// "stream": every byte of K and V once, by loads of 16 bytes: no kernel that has to read them is much faster.
std::unique_ptr<Baseline> makeStream();

} // namespace fagen::lab
