// fagen: what was probably meant by a word that cannot stand where it does.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Parse/Lexer.h"

namespace fagen {

/// A word that begins a part of a kernel: problem, schedule, ...
bool isPartOfKernel(const Token &token);
/// A word that others use for `target`.
bool isOtherTarget(const Token &token);
/// Of a word that begins nothing in a file, and in a kernel: "; did you mean 'kernel'?", or empty.
std::string fileHint(const Token &token);
std::string kernelHint(const Token &token, const Token &ahead);

} // namespace fagen
