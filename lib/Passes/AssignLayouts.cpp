// fagen: pass assign-layouts: how rows and columns of each shared buffer map to bytes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// K, V and Q tiles take the schedule's swizzle. What threads exchange in f32 (scores, partial results, scratch) is
// row-major: its rows are no multiple of the 32-byte pattern, or are read whole.

#include "fagen/Passes/Passes.h"

#include "fagen/Spec/Spec.h"

using namespace fagen;
using namespace fagen::ir;

bool fagen::assignLayouts(Kernel &kernel, PassContext &context) {
  const bool swizzled = context.variant->schedule.swizzle == Swizzle::Xor;
  for (std::unique_ptr<Buffer> &buffer : kernel.buffers)
    if (buffer->space == Space::Shared)
      buffer->layout = swizzled && buffer->type != ElementType::F32 ? Layout::Xor : Layout::RowMajor;
  kernel.phase = Phase::LaidOut;
  return true;
}
