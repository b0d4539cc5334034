// fagen: how ops synchronise.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/Sync.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

const SyncInfo &ir::syncOf(const Op &op) {
  const table::OpSync &sync = table::kSync[unsigned(op.kind)];
  if (!sync.by)
    return sync.rows.front();
  const auto attribute = llvm::find_if(opInfo(op.kind).attributes,
                                       [&](const AttributeInfo &attribute) { return attribute.attr == *sync.by; });
  const auto value = llvm::find(attribute->values, op.text(*sync.by));
  assert(value != attribute->values.end() && "the verifier lets no other value pass");
  return sync.rows[value - attribute->values.begin()];
}

bool ir::isBarrier(Means means) {
  switch (means) {
  case Means::WarpBarrier:
  case Means::CtaBarrier:
  case Means::ClusterBarrier:
  case Means::NamedBarrier:
  case Means::Turns:
    return true;
  default:
    return false;
  }
}

bool ir::isBetweenRoles(Means means) {
  switch (means) {
  case Means::Nothing:
  case Means::CopyGroups:
  case Means::WarpBarrier:
  case Means::CtaBarrier:
  case Means::NamedBarrier:
  case Means::Counters:
    return false;
  default:
    return true;
  }
}

bool ir::synchronises(const SyncInfo &sync) {
  auto isWithinLaunch = [](Means means) { return means != Means::Nothing && means != Means::Counters; };
  return isWithinLaunch(sync.releases) || isWithinLaunch(sync.acquires) || sync.done == Means::Phases ||
         sync.needsFence == Means::InitFence;
}
