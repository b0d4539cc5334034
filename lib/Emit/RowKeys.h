// fagen: which keys a query row sees, where they follow each other.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

#include <optional>
#include <vector>

namespace fagen {

/// Expressions of the row `q`, conditions of `q` and of the key `k`.
struct KeysOfRow {
  ir::Expr begin;                ///< the first key; null where nothing bounds keys from below
  ir::Expr end;                  ///< one past the last
  std::vector<ir::Expr> follow;  ///< each holds from some key on: keys before that are not seen
  std::vector<ir::Expr> areOver; ///< each holds from some key on: that one and those after it are not seen

  bool areBoundBelow() const { return begin || !follow.empty(); }
};

/// Of a conjunction of conditions that bound k by an expression of q, or of comparisons that are monotone in k, as of
/// what is read from a tensor whose values ascend. Nothing where it has others.
std::optional<KeysOfRow> keysOfRow(const ir::Kernel &kernel, const ir::Expr &visible);

} // namespace fagen
