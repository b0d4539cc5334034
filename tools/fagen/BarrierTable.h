// fagen: --emit=barriers: every barrier and wait, and the hazards that it covers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "Compile.h"

namespace fagen {

/// A table for each kernel of each launch, a line for each hazard that a barrier or wait takes part in covering: the
/// site, the place of the policy that asked for it, whether anything is open without it, both accesses with their lines
/// in the emitted file, and the site's partners, which are the waits that complete the source and the barriers that
/// would do as well. Of roles that hand each other what they access (Analysis/Order.h) it is, for each op that
/// synchronises, whether it is the first or the last to order the two; its partner is the other one, and what is open
/// without it nobody says. With `asJson` the same as JSON.
std::string emitBarriers(llvm::ArrayRef<PlannedVariant> variants, bool asJson);

} // namespace fagen
