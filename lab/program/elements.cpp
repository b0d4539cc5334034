// fagen: elements of a program's tensors: their bytes, what they hold, and how they round.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "elements.h"

#include "lab/kernels/numeric.h"
#include "lab/support/byte_floats.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fagen::lab {

namespace {

template <typename T> void put(unsigned char *place, T value) { std::memcpy(place, &value, sizeof(value)); }
template <typename T> T take(const unsigned char *place) {
  T value;
  std::memcpy(&value, place, sizeof(value));
  return value;
}

} // namespace

const ElementInfo &infoOf(Element element) {
  static constexpr ElementInfo kInfos[] = {{"f16", 2, FAGEN_DTYPE_F16, device::MapElement::kF16, 0x1p-11, 0x1p-25},
                                           {"bf16", 2, FAGEN_DTYPE_BF16, device::MapElement::kBf16, 0x1p-8, 0x1p-134},
                                           {"e4m3", 1, FAGEN_DTYPE_E4M3, device::MapElement::kByte, 0x1p-4, 0x1p-10},
                                           {"f32", 4, FAGEN_DTYPE_F32, device::MapElement::kWord, 0x1p-24, 0x1p-134},
                                           {"u32", 4, FAGEN_DTYPE_U32, device::MapElement::kWord, 0x1p-24, 0x1p-134},
                                           {"i32", 4, FAGEN_DTYPE_I32, device::MapElement::kWord, 0x1p-24, 0x1p-134}};
  return kInfos[static_cast<unsigned>(element)];
}

void storeElement(unsigned char *place, Element element, float value) {
  switch (element) {
  case Element::F16:
    return put(place, halfOfFloat(DType::F16, value));
  case Element::BF16:
    return put(place, halfOfFloat(DType::BF16, value));
  case Element::E4M3:
    return put(place, byteOf(kE4M3, value));
  case Element::F32:
    return put(place, value);
  case Element::U32:
    return put(place, std::isnan(value) ? ~0u : static_cast<unsigned>(std::abs(value)));
  case Element::I32:
    return put(place, std::isnan(value) ? -1 : static_cast<int>(value));
  }
}

double loadElement(const unsigned char *place, Element element) {
  switch (element) {
  case Element::F16:
    return floatOfHalf(DType::F16, take<unsigned short>(place));
  case Element::BF16:
    return floatOfHalf(DType::BF16, take<unsigned short>(place));
  case Element::E4M3:
    return valueOf(kE4M3, *place);
  case Element::F32:
    return take<float>(place);
  case Element::U32:
    return take<unsigned>(place);
  case Element::I32:
    return take<int>(place);
  }
  return NAN;
}

double saturated(Element element, double value) {
  return element == Element::E4M3 ? std::clamp(value, -valueOf(kE4M3, kE4M3.largest), valueOf(kE4M3, kE4M3.largest))
                                  : value;
}

} // namespace fagen::lab
