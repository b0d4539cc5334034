// fagen: a row's source to machine code, through the cache.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/table.h>

#include <string>

namespace fagen {

struct Compiled {
  std::string binary; ///< a cubin, or PTX (for a GPU newer than NVRTC)
  bool fromCache = false;
};

/// Compiles a row for a GPU, or finds it in the cache. COMPILE.
fagen_status compileRow(const fagen_row &row, uint32_t sm, Compiled &result);

} // namespace fagen
