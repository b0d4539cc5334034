// fagen: whether every index of every access to global memory lies inside its extent.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For all that sizes, numbers and index tensors may be: what the caller promises of them, else any value of their type.
// Rows and columns that copies and stores by threads leave out, conditions, and bounds of loops are facts. Bulk copies
// and stores compare each coordinate with the tensor's extents themselves, its sign included, and bring zeros or drop
// what is outside: of them only the coordinates must fit in 32 bits, and what they read of index tensors lie inside.
// Integers are of 32 bits: a value that may not fit counts as outside.
#pragma once

#include "fagen/IR/IR.h"

#include <string>
#include <vector>

namespace fagen {

/// An index that may lie outside, a value that may not fit, or a divisor that may be 0.
struct OutOfBounds {
  const ir::Op *op = nullptr;   ///< whose it is; null: a let's
  std::string message;          ///< with what would do
  const ir::Let *let = nullptr; ///< that is read, and is the index: at most `most` it would lie inside
  ir::Expr most;
};

/// Each once. Of a kernel with attention's parameters what expressions read next to them, where there is a key, and
/// each tensor has an element.
std::vector<OutOfBounds> findOutOfBounds(const ir::Kernel &kernel);

/// Roles that read one tensor, each for itself, to know how often a loop of theirs runs or whether ops are there: if
/// somebody writes it meanwhile, they disagree, and wait for ever. Nothing of what the caller promises to be constant.
struct SteeredTwice {
  const ir::Buffer *tensor;
  const ir::Role *first, *second;
};
std::vector<SteeredTwice> findSteeredTwice(const ir::Kernel &kernel);

} // namespace fagen
