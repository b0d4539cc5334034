// fagen: a breakdown's events as a trace that Perfetto and chrome://tracing open.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "breakdown.h"
#include "lab/support/text_table.h"

namespace fagen::lab {

/// Trace Event Format: a process a CTA, a thread a warp, a complete event a stage; microseconds since the first warp
/// began. Clocks of an SM are laid on the GPU's time at its first warp.
Json stageTrace(const Breakdown &breakdown);

} // namespace fagen::lab
