// fagen: the shared memory that a schedule needs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function, for the spec's check and for allocate-shared:
//
//   total = slots * Q + stages * (K + V) + what lies beside them, each rounded up to 128 B, or as far as what lies over
//   the ring
//
// Beside them lies a slice of O, where results leave through shared memory and Q has one slot.
//
// Over the ring lie Q while it is on its way to registers (if it fits; else it has its own place), and the partial
// results of key warps when the last tile is done. Beside it lie S (scalar kernels; P overwrites it), the scratch of
// row reductions through shared memory, and with wmma S, P and P V (P V overwrites S where both have the same shape;
// with f16 accumulators P overwrites S instead), and with bulk copies mbarriers.
#pragma once

#include "fagen/Spec/Spec.h"

namespace fagen {

struct SharedBuffer {
  llvm::StringRef name; ///< as in the IR
  uint64_t bytes = 0;   ///< of all stages
  bool overRing = false;
};

struct SharedMemory {
  std::vector<SharedBuffer> buffers;
  uint64_t total = 0;

  uint64_t bytesOf(llvm::StringRef name) const; ///< 0 for a buffer that the kernel has not
  bool isOverRing(llvm::StringRef name) const;
};

SharedMemory computeSharedMemory(const Problem &problem, const Schedule &schedule);

/// Slots of Q: two where CTAs take tile after tile and both fit, so that the next Q comes while this one is used, and
/// results leave through the slot that was read.
unsigned countQuerySlots(const Problem &problem, const Schedule &schedule);

/// Columns of O that leave through shared memory at once, where CTAs take tile after tile and Q has one slot: half of
/// them if those fit, else 0 (each thread stores its own).
unsigned countStagedColumns(const Problem &problem, const Schedule &schedule);

/// Bytes of one element of a tensor.
unsigned elementBytes(DType type);

} // namespace fagen
