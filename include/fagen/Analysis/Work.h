// fagen: what an op of a kernel asks of an SM's units.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

namespace fagen::model {

/// What a CTA does, and asks of an SM's units.
struct Work {
  double tensorFlops = 0;      ///< with sums in f32
  double tensorF16Flops = 0;   ///< with sums in f16
  double askedFlops = 0;       ///< of products that are issued, and run alongside what follows
  double askedWavefronts = 0;  ///< of shared memory, which these read their operands from
  double bulkBytes = 0;        ///< that the copy engine brings; a cluster's CTAs share what is for all of them
  double exps = 0;             ///< lanes of the unit for special functions
  double fp32 = 0;             ///< lanes of full rate: softmax, rescale, addresses
  double halfRate = 0;         ///< lanes of half rate: maxima and conversions
  double copiedWavefronts = 0; ///< as the way of copies counts them
  double wavefronts = 0;       ///< of shared memory
  double copiedBytes = 0, storedBytes = 0;
  double barriers = 0;
  double loadRounds = 0; ///< round trips to global memory that a thread stands still for

  Work &operator+=(const Work &other);
};
Work workOf(const ir::Kernel &kernel, const ir::Role &role, const ir::Op &op);
/// Warps of the role that issue a product together, and go through its ops as one.
unsigned warpsOfGroup(const ir::Kernel &kernel);

} // namespace fagen::model
