// fagen: the grid of a kernel, from text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../ParseBuffers.h"

namespace fagen::ir {

/// grid persistent drawn (m in ceil_div(M, 128), n in ...) last_first, and what attention's grids are called.
bool parseGrid(Lexer &lexer, Kernel &kernel, BufferParser &buffers);

} // namespace fagen::ir
