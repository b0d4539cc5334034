// fagen: what bulk tensor copies know of a tensor. Shared by host runtime, kernels and emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fagen::device {

/// The driver's encoding (CUtensorMap), or for the emulator a TensorMapDescription. A kernel takes it by value, as part
/// of a __grid_constant__ parameter.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

/// Bytes of a row of a box whose 16-byte chunks are permuted by the row number (tile/layout.h); 0: none.
enum class BoxSwizzle : unsigned char { kNone = 0, k32B = 32, k64B = 64, k128B = 128 };

inline constexpr int kMapRank = 5;

/// A tensor and the box that one copy moves. Dimension 0 is dense.
struct TensorMapDescription {
  const void *base;                     ///< a multiple of 16
  unsigned long long strides[kMapRank]; ///< bytes, of dimensions 1 and up a multiple of 16; [0] is not used
  unsigned sizes[kMapRank];             ///< elements of each dimension, at least 1
  unsigned short box[kMapRank];         ///< elements, 1 to 256
  unsigned char rank;                   ///< 1 to 5
  unsigned char element_bytes;          ///< 1, 2 or 4
  BoxSwizzle swizzle;
  unsigned char is_bf16; ///< of elements of 2 bytes
  unsigned mark;         ///< kMapMark
};
inline constexpr unsigned kMapMark = 0x70616d66; ///< of a description; a driver's map in the emulator lacks it
static_assert(sizeof(TensorMapDescription) <= sizeof(TensorMap), "a description stands in a map's place");

} // namespace fagen::device
