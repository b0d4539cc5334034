// fagen: JSON that others wrote.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/Support/JSON.h"

namespace fagen {

/// The value of a text. An error, with the line, for one that is not JSON in UTF-8, or nests deeper than 64 values:
/// llvm::json calls itself for each level, and no text must exhaust the stack.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text);

} // namespace fagen
