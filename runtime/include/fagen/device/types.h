// fagen: element types of tensors, as bits. 16-bit values are converted by ptx functions only.
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

} // namespace fagen::device
