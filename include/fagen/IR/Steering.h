// fagen: which run-time values decide what a kernel does.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

namespace fagen::ir {

/// Analyses unroll a kernel for every combination of values of the lets that steer it. More lets than this would make
/// too many combinations.
inline constexpr unsigned kMaxSteering = 3;

struct SteeringLets {
  /// That bounds and steps of loops, conditions, positions or announced bytes name, and that constants do not
  /// determine.
  llvm::SmallVector<const Let *, 4> lets;
  /// Counts the turns of a loop that carries a value; not among `lets`. Null where there is none.
  const Let *turns = nullptr;
};

/// Of these roles together. Attributes of ops have the types of Ops.td.
SteeringLets steeringLets(const Kernel &kernel, llvm::ArrayRef<const Role *> roles);

/// Calls `visit` with each expression of the op that decides what happens, and where: bounds and steps, conditions,
/// positions. Not with the bytes that it announces.
void forEachSteering(const Op &op, llvm::function_ref<void(const Expr &)> visit);

} // namespace fagen::ir
