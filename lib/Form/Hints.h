// fagen: what was probably meant by a name or function that forms do not have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/StringRef.h"

namespace fagen::form {

/// "the query's place is p"; empty: nothing is known of the word.
llvm::StringRef hintForName(llvm::StringRef word);
llvm::StringRef hintForFunction(llvm::StringRef word);

} // namespace fagen::form
