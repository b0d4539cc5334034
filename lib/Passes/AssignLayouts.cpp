// fagen: pass assign-layouts: how rows and columns of each shared buffer map to bytes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// K, V and Q tiles take the schedule's swizzle. What threads exchange in f32 (scores, partial results, scratch) is
// row-major: its rows are no multiple of the 32-byte pattern, or are read whole. With wmma the results of products
// cross shared memory as whole matrices, so there they are padded too. The bulk copy engine's 128 B pattern is the xor
// layout of panels of 64 columns.

#include "fagen/Passes/Passes.h"

#include "fagen/Target/MmaInstrs.h"

#include "fagen/Spec/Spec.h"

using namespace fagen;
using namespace fagen::ir;

bool fagen::assignLayouts(Kernel &kernel, PassContext &context) {
  const Swizzle swizzle = context.variant->schedule.swizzle;
  const bool isXor = swizzle == Swizzle::Xor || swizzle == Swizzle::B128; // of 64 columns on the same
  const Layout layout = isXor ? Layout::Xor : swizzle == Swizzle::Pad ? Layout::Padded : Layout::RowMajor;
  const MmaFamilyInfo &family = mmaFamily(kernel.backend);
  const bool crossesWhole = family.isCollective && !family.keepsResults; // results of products, as matrices
  for (std::unique_ptr<Buffer> &buffer : kernel.buffers)
    if (buffer->space == Space::Shared && buffer->columns > 1)
      buffer->layout = buffer->type != ElementType::F32 || crossesWhole ? layout : Layout::RowMajor;
  kernel.phase = Phase::LaidOut;
  return true;
}
