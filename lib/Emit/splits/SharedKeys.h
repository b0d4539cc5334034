// fagen: the keys that splits of a tile of query rows share: all, or those that some row sees.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"
#include "fagen/Spec/Spec.h"

#include <optional>
#include <vector>

namespace fagen {

/// Keys [first, end) without those of [gapBegin, gapEnd), of a tile of rows; no gap is known where these are null.
struct SharedKeys {
  ir::Expr first, end, gapBegin, gapEnd;
};

/// Where splits share what the rows see: where these see none of the first keys, or none after as many keys as the
/// kernel reads or is given, and lets and parameters alone say which. None: they share all keys.
std::optional<SharedKeys> sharedKeys(const ir::Kernel &kernel);

/// How many key tiles these are, as a program over sizes, SelectVariable::Row and the kernel's scalars: the n-th is
/// variable kFirstScalar + n. Empty: all of the problem's, or it is not known before the kernel runs.
std::vector<SelectOp> countSharedTiles(const ir::Kernel &kernel);

} // namespace fagen
