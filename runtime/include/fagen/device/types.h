// fagen: element types of tensors, as bits. Values are converted by ptx functions only.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fagen::device {

/// IEEE binary16.
struct f16 {
  unsigned short bits;
};

/// bfloat16: the upper half of an f32.
struct bf16 {
  unsigned short bits;
};

/// Four bits of exponent, three of fraction: no infinity, 448 the largest number, 0x7f and 0xff NaN (OCP OFP8).
struct e4m3 {
  unsigned char bits;
};

/// The upper half of an f16: five bits of exponent, two of fraction (OCP OFP8).
struct e5m2 {
  unsigned char bits;
};

} // namespace fagen::device
