// fagen: pass allocate-shared: the offset of each shared buffer.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Buffers lie one after the other in the order in which build-tiles made them, 128-byte aligned (a swizzle pattern
// starts at a multiple of its 128 bytes). What overlays the rings starts where the first of them does and may reach
// over the others; what follows the rings starts after the longest. Hazards are computed on these bytes.

#include "fagen/Passes/Passes.h"

#include "llvm/Support/MathExtras.h"

using namespace fagen;
using namespace fagen::ir;

static constexpr uint64_t kAlignment = 128;

/// Where the buffers that overlay `base` end.
static uint64_t placeOverlays(Kernel &kernel, const Buffer &base) {
  uint64_t end = 0;
  for (std::unique_ptr<Buffer> &buffer : kernel.buffers)
    if (buffer->overlays == &base) {
      buffer->offset = base.offset;
      end = std::max(end, *base.offset + buffer->bytes());
    }
  return llvm::alignTo(end, kAlignment);
}

bool fagen::allocateShared(Kernel &kernel, PassContext &) {
  uint64_t end = 0, overlaysEnd = 0;
  for (std::unique_ptr<Buffer> &buffer : kernel.buffers) {
    if (buffer->space != Space::Shared || buffer->overlays)
      continue;
    if (!buffer->isRing) // overlays reach over rings only
      end = std::max(end, overlaysEnd);
    buffer->offset = end;
    end = llvm::alignTo(end + buffer->bytes(), kAlignment);
    overlaysEnd = std::max(overlaysEnd, placeOverlays(kernel, *buffer));
  }
  kernel.sharedBytes = std::max(end, overlaysEnd);
  kernel.phase = Phase::Allocated;
  return true;
}
