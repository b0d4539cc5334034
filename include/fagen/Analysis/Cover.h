// fagen: the cheapest barriers that order a set of hazards.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Analysis/Hazards.h"

namespace fagen {

/// A barrier to be put at a point.
struct Placement {
  unsigned point = 0;
  Scope scope = Scope::Cta; ///< Cta or Warp
};

/// An irredundant set of barriers that, with those already there, covers every hazard a barrier can cover: none can be
/// removed, and none that reaches over the CTA would do as a warp barrier. In order of points.
std::vector<Placement> coverHazards(const HazardInfo &info);

} // namespace fagen
