// fagen: times or joules that a tuner measured, and what follows from them for a kernel's schedules and its select.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Spec/Spec.h"
#include "fagen/Support/Diagnostics.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <map>

namespace fagen {

/// One schedule on one problem.
struct TunedTime {
  std::map<std::string, std::string> settings; ///< as a spec writes them: tile = "128 x 64"
  double cost = 0;                             ///< of a launch: microseconds, or millijoules
};

/// What was measured of one problem on one GPU. Times compare within a study only.
struct TunedStudy {
  std::string gpu, driver, specHash;
  std::string measure = "time"; ///< or joules: what the costs are
  std::string kernel, target, dtype, accum, mask;
  bool lse = true;
  int64_t headDimQK = 0, headDimV = 0, batch = 0, heads = 0, kvHeads = 0, seqQ = 0, seqKv = 0, sms = 0;
  std::vector<TunedTime> times;
};

/// What the tuner calls a spec of this text, tuned with that --target (empty: none).
std::string tunedSpecHash(llvm::StringRef text, llvm::StringRef target);

/// Why a variant with tuned values must not be taken; empty when it may.
using TunedVeto = llvm::function_ref<std::string(const KernelSpec &kernel, const Variant &variant)>;

/// Gives each schedule of each problem point the values, and select the thresholds, for which the worst regret over the
/// studies is least. Regret: cost over the least cost of the study. Studies of other kernels are left out; false when
/// none is of this one. So are those that measured something else than what the kernel's select wants least of. What
/// the compiler does not take any more, and what `veto` (when there is one) refuses, is left out with a warning; it is
/// asked about what would be taken only.
bool applyTuned(KernelSpec &kernel, llvm::ArrayRef<TunedStudy> studies, SharedMeter &meter, Diagnostics &diags,
                TunedVeto veto = nullptr);

} // namespace fagen
