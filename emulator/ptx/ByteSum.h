// fagen: how the tensor cores of sm_90 add products of bytes, as the emulator computes it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

namespace fagen::emulator {

constexpr unsigned kByteDepth = 32; ///< products of one instruction

/// The accumulator plus the products of 32 pairs of e4m3, bit for bit as wgmma gives it: products are exact; all terms,
/// the accumulator among them, are shifted to the largest exponent and cut to 13 bits below it, and the sum is cut to
/// 13 bits of fraction. Source: docs/internals/Arithmetic.md, measured.
float addByteProducts(const uint8_t *a, const uint8_t *b, float accumulator);

} // namespace fagen::emulator
