// fagen: whether each CTA of a launch writes elements of its own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

namespace fagen {

/// Whether no two tiles of the grid reach the same element of the matrix by this op: for each index of the grid some
/// coordinate moves by at least as much as the op reaches. Of kernels with parameters of their own.
bool reachesOwnElements(const ir::Kernel &kernel, const ir::Role &role, const ir::Op &op);

/// Whether the ops, of the same matrix, reach different elements of it, also in different tiles of the grid: along some
/// coordinate one begins where the other has ended, and no tile reaches what the two of another tile do.
bool reachApart(const ir::Kernel &kernel, const ir::Role &roleOfA, const ir::Op &a, const ir::Role &roleOfB,
                const ir::Op &b);

/// Whether CTAs that differ in more than their part reach no row of each other's: each stores its part of rows by
/// `store`, a store_merged_split, and the last of those that share them merges all parts by `combine`, a combine_last.
/// Of a kernel with parameters of its own.
bool areOwnRowsOfParts(const ir::Kernel &kernel, const ir::Role &role, const ir::Op &store, const ir::Op &combine);

} // namespace fagen
