// fagen: gates of require that the compiler can check itself.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Spec/Fit.h"
#include "fagen/Support/Diagnostics.h"

namespace fagen {

/// Whether a figure satisfies a gate without a baseline.
bool gateHolds(const Gate &gate, double measured);

/// Checks the `shared` gates against every variant; failures are errors at the gate, and give false.
bool checkSharedGates(const KernelSpec &kernel, SharedMeter &meter, Diagnostics &diags);

/// What a schedule near to the variant's may take so that the gate holds of it.
FitLimits limitsOf(const Gate &gate, const Variant &variant);

/// The note of a failed gate at the schedule's tile; the remedy is that of nearestThatFits().
std::string besideItsTile(const std::string &remedy);

} // namespace fagen
