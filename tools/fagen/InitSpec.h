// fagen: a spec to start from: one problem, its schedules with reasons in comments.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Target/Target.h"

#include <optional>
#include <string>

namespace fagen {

/// What somebody who starts knows.
struct InitProblem {
  std::string kernel = "attention"; ///< its name
  std::string gpu;                  ///< as it was asked for
  const TargetInfo *target = nullptr;
  std::string dtype = "f16";
  std::string mask = "[none, causal]"; ///< as the spec writes it
  unsigned headDim = 0;                ///< of Q and K
  unsigned headDimV = 0;
};

/// A spec of the problem that the checks of specs accept: the first of a list of tiles, the fastest first, that fits.
/// In canonical layout. Nothing when none does.
std::optional<std::string> initSpec(const InitProblem &problem);

} // namespace fagen
