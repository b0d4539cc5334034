// fagen: elements of a program's tensors: their bytes, what they hold, and how they round.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "elements.h"

#include "lab/kernels/numeric.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fagen::lab {

namespace {

constexpr double kLargestE4m3 = 448;
constexpr int kLeastExponentE4m3 = -6; // of the smallest normal number
constexpr unsigned char kNanE4m3 = 0x7f;

/// One sign, four bits of exponent, three of fraction.
unsigned char e4m3Of(float value) {
  if (std::isnan(value))
    return kNanE4m3;
  const auto sign = static_cast<unsigned char>(std::signbit(value) ? 0x80 : 0);
  const double magnitude = std::min<double>(std::abs(value), kLargestE4m3);
  const int exponent = magnitude == 0 ? kLeastExponentE4m3 : std::max(std::ilogb(magnitude), kLeastExponentE4m3);
  const auto eighths = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 3 - exponent))); // 8 to 16, or below
  return static_cast<unsigned char>(sign | ((exponent - kLeastExponentE4m3) * 8 + eighths));
}

double valueOfE4m3(unsigned char bits) {
  if ((bits & 0x7f) == kNanE4m3)
    return NAN;
  const int field = bits >> 3 & 15, fraction = bits & 7;
  const double magnitude =
      std::ldexp(field == 0 ? fraction : 8 + fraction, std::max(field, 1) - 1 + kLeastExponentE4m3 - 3);
  return bits & 0x80 ? -magnitude : magnitude;
}

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
                                           {"u32", 4, FAGEN_DTYPE_U32, device::MapElement::kWord, 0x1p-24, 0x1p-134}};
  return kInfos[static_cast<unsigned>(element)];
}

void storeElement(unsigned char *place, Element element, float value) {
  switch (element) {
  case Element::F16:
    return put(place, halfOfFloat(DType::F16, value));
  case Element::BF16:
    return put(place, halfOfFloat(DType::BF16, value));
  case Element::E4M3:
    return put(place, e4m3Of(value));
  case Element::F32:
    return put(place, value);
  case Element::U32:
    return put(place, std::isnan(value) ? ~0u : static_cast<unsigned>(std::abs(value)));
  }
}

double loadElement(const unsigned char *place, Element element) {
  switch (element) {
  case Element::F16:
    return floatOfHalf(DType::F16, take<unsigned short>(place));
  case Element::BF16:
    return floatOfHalf(DType::BF16, take<unsigned short>(place));
  case Element::E4M3:
    return valueOfE4m3(*place);
  case Element::F32:
    return take<float>(place);
  case Element::U32:
    return take<unsigned>(place);
  }
  return NAN;
}

double saturated(Element element, double value) {
  return element == Element::E4M3 ? std::clamp(value, -kLargestE4m3, kLargestE4m3) : value;
}

} // namespace fagen::lab
