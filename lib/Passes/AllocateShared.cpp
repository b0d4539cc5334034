// fagen: pass allocate-shared: the offset of each shared buffer.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Buffers lie one after the other in the order in which build-tiles made them, 128-byte aligned. Copy engine and tensor
// cores swizzle by bits of the address, eight rows of up to 128 bytes, so that what they use swizzled begins at a
// multiple of 1024. What overlays the rings starts where the first of them does and may reach
// over the others; what follows the rings starts after the longest. Hazards are computed on these bytes.

#include "fagen/IR/Queries.h"
#include "fagen/IR/Sync.h"
#include "fagen/Passes/Passes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace fagen;
using namespace fagen::ir;

static constexpr uint64_t kAlignment = 128, kOfPatterns = 1024;

static bool isByEngine(const Op &op) {
  const Agent agent = syncOf(op).agent;
  return agent == Agent::AsyncProxy || agent == Agent::TensorCores;
}

static uint64_t alignmentOf(const Kernel &kernel, const Buffer &buffer) {
  if (buffer.layout != Layout::Xor)
    return kAlignment;
  bool isOfEngine = false;
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) {
      isOfEngine |= isByEngine(op) &&
                    llvm::any_of(op.operands, [&](const Operand &operand) { return operand.buffer == &buffer; });
    });
  return isOfEngine ? kOfPatterns : kAlignment;
}

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
  uint64_t end = 0, overlaysEnd = 0, alignment = kAlignment;
  for (std::unique_ptr<Buffer> &buffer : kernel.buffers) {
    if (buffer->space != Space::Shared || buffer->overlays)
      continue;
    if (!buffer->isRing) // overlays reach over rings only
      end = std::max(end, overlaysEnd);
    const uint64_t offset = llvm::alignTo(end, alignmentOf(kernel, *buffer));
    if (offset != end)
      alignment = kOfPatterns; // of the whole, as C++ has it of a struct with such a member
    buffer->offset = offset;
    end = llvm::alignTo(offset + buffer->bytes(), kAlignment);
    overlaysEnd = std::max(overlaysEnd, placeOverlays(kernel, *buffer));
  }
  kernel.sharedBytes = llvm::alignTo(std::max(end, overlaysEnd), alignment);
  kernel.phase = Phase::Allocated;
  return true;
}
