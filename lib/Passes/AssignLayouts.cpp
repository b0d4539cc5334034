// fagen: pass assign-layouts: how rows and columns of each shared buffer map to bytes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles take the swizzle that the kernel is asked for. What threads exchange in f32 (scores, partial results, scratch)
// is row-major: its rows are no multiple of the 32-byte pattern, or are read whole. With wmma the results of products
// cross shared memory as whole matrices, so there they are padded too. The bulk copy engine's 128 B pattern is the xor
// layout of panels of 64 columns. A kernel that asks for none, which IR from text may, has the layouts that it states.

#include "fagen/Passes/Passes.h"

#include "fagen/Target/MmaInstrs.h"

#include "ShapeCheck.h"
#include "fagen/Spec/Spec.h"

#include <optional>

using namespace fagen;
using namespace fagen::ir;

/// Nothing where no kernel has it.
static std::optional<Layout> layoutOf(Swizzle swizzle) {
  switch (swizzle) {
  case Swizzle::None:
    return Layout::RowMajor;
  case Swizzle::Pad:
    return Layout::Padded;
  case Swizzle::Xor:
  case Swizzle::B128: // of 64 columns on the same
    return Layout::Xor;
  case Swizzle::B32:
  case Swizzle::B64:
    return std::nullopt;
  }
  llvm_unreachable("a swizzle");
}

static void layOut(Kernel &kernel, Layout layout) {
  const MmaFamilyInfo &family = mmaFamily(kernel.backend);
  const bool crossesWhole = family.isCollective && !family.keepsResults; // results of products, as matrices
  for (std::unique_ptr<Buffer> &buffer : kernel.buffers)
    if (buffer->space == Space::Shared && buffer->columns > 1)
      buffer->layout = buffer->type != ElementType::F32 || crossesWhole ? layout : Layout::RowMajor;
}

bool fagen::assignLayouts(Kernel &kernel, PassContext &context) {
  if (const auto &asked = kernel.options.swizzle) {
    const std::optional<Layout> layout = layoutOf(asked->value);
    if (!ShapeCheck(kernel, context, "assign-layouts")
             .needs(layout.has_value(), "swizzle none, xor, pad or b128", asked->location))
      return false;
    layOut(kernel, *layout);
  }
  kernel.phase = Phase::LaidOut;
  return true;
}
