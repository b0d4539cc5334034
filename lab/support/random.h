// fagen: counter-based random numbers for test inputs: the same on every machine, in any order.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstdint>

namespace fagen::lab {

/// Philox4x32-10 (Salmon et al., SC'11): four random words from a 128-bit counter and a 64-bit key.
std::array<uint32_t, 4> philox(const std::array<uint32_t, 4> &counter, uint64_t key);

/// Standard normal values by counter: element `index` of stream `stream`. Each is one of 65536 equally likely
/// quantiles (largest magnitude 4.3), so no libm call stands between seed and value.
class NormalStream {
public:
  NormalStream(uint64_t seed, uint32_t stream) : seed(seed), stream(stream) {}
  /// The eight values of elements 8 * block .. 8 * block + 7.
  std::array<float, 8> block(uint64_t block) const;
  float at(uint64_t index) const { return block(index / 8)[index % 8]; }

private:
  uint64_t seed;
  uint32_t stream;
};

} // namespace fagen::lab
