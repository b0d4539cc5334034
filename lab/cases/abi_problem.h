// fagen: a case as the C ABI describes it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "abi.h"
#include "placement.h"

namespace fagen::lab {

/// Where the tensors of a case lie.
struct Placements {
  Placement q, k, v, o, lse;
  explicit Placements(const Case &c);
};
/// The C ABI's description of a case with these placements. It points into the arguments of the case's form.
fagen_problem describeProblem(const Case &c, const Placements &places);

} // namespace fagen::lab
