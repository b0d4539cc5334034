// fagen: the key from which on a mask hides all keys from all rows of a tile alike.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/Expr.h"

namespace fagen {

/// Of a conjunction with conditions k < n, where n is the same for a whole tile: the least n. Null where there is none.
ir::Expr commonKeyEnd(const ir::Expr &mask);

} // namespace fagen
