// fagen: the cheapest barriers that order a set of hazards.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Analysis/Hazards.h"

namespace fagen {

/// How far a barrier reaches.
struct Reach {
  Scope scope = Scope::Cta; ///< Warp, Group, or Cta: all warps of the role
  Grouping grouping;        ///< where the scope is Group
  /// Whether it orders what needs the other.
  bool covers(const Reach &other) const {
    return scope == Scope::Cta || other.scope == Scope::Warp ||
           (scope == Scope::Group && other.scope == Scope::Group && grouping.contains(other.grouping));
  }
  auto operator<=>(const Reach &) const = default;
};

/// A barrier to be put at a point.
struct Placement {
  unsigned point = 0;
  Reach reach;
};

/// An irredundant set of barriers that, with those already there, covers every hazard that a barrier can cover and
/// `isWanted` asks for: none can be removed, and none would do with a smaller reach. In order of points. Different
/// groupings together have at most `freeIds` groups: as many named barriers are free.
std::vector<Placement> coverHazards(const HazardInfo &info, unsigned freeIds,
                                    llvm::function_ref<bool(const Hazard &)> isWanted);

} // namespace fagen
