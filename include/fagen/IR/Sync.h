// fagen: how ops synchronise, as the table at the end of Ops.td says.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"
#include "fagen/IR/OpSync.h" // generated from Ops.td: enum class Agent, Means, SyncInfo

namespace fagen::ir {

/// The op's row; where an attribute decides, that of its value.
const SyncInfo &syncOf(const Op &op);

/// Whether warps meet there: a barrier, or a turn.
bool isBarrier(Means means);
/// Whether roles, or threads and what runs alongside them, tell each other so; a kernel of one role can do without.
bool isBetweenRoles(Means means);

/// Whether others wait for what the op tells, or the op for them, within a launch: it may not be left out unseen.
bool synchronises(const SyncInfo &sync);

} // namespace fagen::ir
