// fagen: bodies of ops from text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "Lexer.h"

namespace fagen::ir {

/// { ops }
bool parseBody(Lexer &lexer, Kernel &kernel, Block &body);

} // namespace fagen::ir
