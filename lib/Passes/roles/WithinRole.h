// fagen: what warps of a role write to shared memory for other warps of it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../OpPlaces.h"
#include "fagen/IR/Sync.h"

#include <map>

namespace fagen {

/// Ops that are to stand before others: barriers of the roles' warps, after fences where products read what threads
/// wrote, so that who reads finds what was written, and who writes overwrites nothing that is still read. None where
/// the text has a barrier.
std::map<const ir::Op *, ir::Ops> barriersWithinRoles(ir::Kernel &kernel, const OpPlaces &places);

/// The op, or the fence of products and the products that stand before it, so that nothing comes between these.
const ir::Op *beforeProducts(const ir::Op &op, const OpPlaces &places);

} // namespace fagen
