// fagen: elements of a program's tensors: their bytes, what they hold, and how they round.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <fagen/device/tensor_map.h>
#include <fagen/fagen.h>

namespace fagen::lab {

enum class Element : uint8_t { F16, BF16, E4M3, F32, U32 };

struct ElementInfo {
  const char *name;
  int64_t bytes;
  uint32_t dtype;            ///< FAGEN_DTYPE_...
  device::MapElement ofMaps; ///< what maps call it
  double rounding;           ///< half a unit of the last place, relative
  double least;              ///< half of the smallest number that is not 0
};
const ElementInfo &infoOf(Element element);
inline int64_t bytesOf(Element element) { return infoOf(element).bytes; }
inline const char *nameOf(Element element) { return infoOf(element).name; }

/// Rounded to nearest, ties to even. A number beyond the largest e4m3 becomes that one. A u32 takes the magnitude, cut.
void storeElement(unsigned char *place, Element element, float value);
double loadElement(const unsigned char *place, Element element);

/// What a result of the element is where the truth is `value`: of e4m3 at most 448, as conversions saturate.
double saturated(Element element, double value);

} // namespace fagen::lab
