// fagen: gates of require that the compiler can check itself.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Spec/Spec.h"
#include "fagen/Support/Diagnostics.h"

namespace fagen {

/// Whether a figure satisfies a gate without a baseline.
bool gateHolds(const Gate &gate, double measured);

/// Checks the `shared` gates against every variant; failures are errors at the gate, and give false.
bool checkSharedGates(const KernelSpec &kernel, Diagnostics &diags);

} // namespace fagen
