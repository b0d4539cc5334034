// fagen: constants of the device library that shapes name without a declaration.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/LibraryConstants.h"

#include "fagen/device/tile/layout.h"

using namespace fagen;
using namespace fagen::ir;

static constexpr std::pair<llvm::StringLiteral, unsigned> kConstants[] = {{"kPartialExtra", device::kPartialExtra},
                                                                          {"kSplitExtra", device::kSplitExtra}};

Expr ir::variable(LibraryConstant constant) { return Expr::variable(kConstants[size_t(constant)].first); }

std::optional<int64_t> ir::libraryConstant(llvm::StringRef name) {
  for (const auto &[known, value] : kConstants)
    if (known == name)
      return value;
  return std::nullopt;
}
