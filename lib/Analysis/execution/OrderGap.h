// fagen: what is missing between two accesses that meet.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Analysis/AccessTable.h"

#include <string>

namespace fagen {

enum class Gap : uint8_t { None, Incomplete, Unordered, InitFence, ProxyFence, ProductFence };

/// Empty for none.
std::string textOf(Gap gap, const Access &first);

} // namespace fagen
