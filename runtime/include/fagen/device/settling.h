// fagen: how large the terms of a row may grow whose maximum is not taken; read by kernels and by the compiler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fagen::device {

/// What a thread's terms of one row may add up to. f16 must hold each of them; half of its range is used. Of bf16,
/// which has the range of f32, the sums of O are the limit: with 2^40 they are finite for |V| below 2^70 and 2^15 key
/// tiles.
constexpr float kSettledSumF16 = 32768.0f;
constexpr float kSettledSumBf16 = 1099511627776.0f; // 2^40
constexpr float kSettledSumE4M3 = 448.0f;           // its largest number

/// Beyond this a row's terms do not come down by a factor: the whole row's sum may be infinite, and the factor of one
/// that is not would be 0, which exp2 gives below 2^-126. Four threads' sums are at most 2^102, which is 2^122 times
/// what they come down to.
constexpr float kFiniteSum = 1.26765060022822940e30f; // 2^100

/// What the terms of a row come down to, as a power of two of their sum. f16 keeps the bits of what is small next to
/// them as it does next to a row's maximum. bf16 has them all anyway, and room to grow for longer.
constexpr float kLoweredBitsF16 = 0.0f;
constexpr float kLoweredBitsBf16 = -20.0f;
/// As where a row's largest of some hundred terms is 2^4: its own are numbers of full precision down to 2^-6, and it
/// may grow eight times.
constexpr float kLoweredBitsE4M3 = 7.0f;

} // namespace fagen::device
