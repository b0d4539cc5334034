// fagen: constants of the device library that shapes name without a declaration.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/Expr.h"

namespace fagen::ir {

/// Of fagen/device/tile/layout.h, by the same names.
enum class LibraryConstant : uint8_t {
  PartialExtra, ///< columns of a row of results that warps merge, after those of the results
  SplitExtra    ///< likewise of a row that splits leave in the workspace
};

Expr variable(LibraryConstant constant);

/// Nothing where none has that name.
std::optional<int64_t> libraryConstant(llvm::StringRef name);

} // namespace fagen::ir
