// fagen: what a kernel needs of an SM, by whoever can tell.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "device.h"

namespace fagen::lab {

/// Of one row; -1: not told.
struct ResourceFigures {
  int64_t registers = -1;   ///< a thread's
  int64_t spillBytes = -1;  ///< stored and loaded, a thread's; by the driver: bytes of local memory
  int64_t sharedBytes = -1; ///< a CTA's
  int64_t ctasPerSm = -1;   ///< that an SM of the target holds
  std::string source;       ///< "ptxas (resources.json)", "the driver, for sm_90", "the manifest"
};

/// The driver's figures when the row was built for its target's GPU; else those that `fagen --check-resources` left in
/// the set's resources.json; else only the manifest's shared memory: what another GPU's compiler makes of the text is
/// not what ships. `sm` is that of the GPU, 0 when there is none. UserError when resources.json is damaged.
ResourceFigures resourcesOf(const KernelSet &set, const fagen_row &row, const Built &built, uint32_t sm);

} // namespace fagen::lab
