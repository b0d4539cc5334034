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

/// Elements as the driver tells them apart. Copies move bits, and zeros are zeros of every type: of others than 2 bytes
/// it need not know which they are.
enum class MapElement : unsigned char { kByte, kF16, kBf16, kWord };

constexpr unsigned bytes_of(MapElement element) {
  switch (element) {
  case MapElement::kByte:
    return 1;
  case MapElement::kF16:
  case MapElement::kBf16:
    return 2;
  case MapElement::kWord:
    return 4;
  }
  return 0;
}

inline constexpr int kMapRank = 5;

/// A tensor and the box that one copy moves. Dimension 0 is dense.
struct TensorMapDescription {
  const void *base;                     ///< a multiple of 16
  unsigned long long strides[kMapRank]; ///< bytes, of dimensions 1 and up a multiple of 16; [0] is not used
  unsigned sizes[kMapRank];             ///< elements of each dimension, at least 1
  unsigned short box[kMapRank];         ///< elements, 1 to 256
  unsigned char rank;                   ///< 1 to 5
  unsigned char element_bytes;          ///< of `element`
  BoxSwizzle swizzle;
  MapElement element;
  unsigned mark; ///< kMapMark
};
inline constexpr unsigned kMapMark = 0x70616d66; ///< of a description; a driver's map in the emulator lacks it
static_assert(sizeof(TensorMapDescription) <= sizeof(TensorMap), "a description stands in a map's place");

} // namespace fagen::device
