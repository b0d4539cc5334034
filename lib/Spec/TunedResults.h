// fagen: what a tuner's results say of a variant: the problems that it computes, and the values that were timed on
// them. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Spec/Tuned.h"

namespace fagen {

/// One set of values that the compiler takes.
struct TunedChoice {
  Schedule schedule;
  bool isWritten = false;    ///< what the spec has
  std::vector<double> costs; ///< by class; 0: not measured
  bool mayBeTaken = false;   ///< the veto was asked
};

/// A problem that was searched.
using TunedClass = const TunedStudy *;

/// The studies whose problem select gives to the variant. Of two studies of one problem on one GPU the later one
/// counts.
std::vector<TunedClass> tunedClasses(const KernelSpec &kernel, const Variant &variant,
                                     llvm::ArrayRef<TunedStudy> studies);

/// The spec's own values first. Those that the compiler does not take are left out with one warning.
std::vector<TunedChoice> tunedChoices(const Variant &variant, llvm::ArrayRef<TunedClass> classes, SharedMeter &meter,
                                      Diagnostics &diags);

/// What two schedules have in other values: "tile = 64 x 64, warps = 8".
std::string differenceOf(const Schedule &schedule, const Schedule &from);

} // namespace fagen
