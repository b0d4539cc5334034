// fagen: Philox and the table of normal quantiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "random.h"

#include <cmath>
#include <vector>

namespace fagen::lab {

std::array<uint32_t, 4> philox(const std::array<uint32_t, 4> &counter, uint64_t key) {
  auto [c0, c1, c2, c3] = counter;
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t product0 = uint64_t{0xD2511F53} * c0;
    uint64_t product1 = uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ k0;
    c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(product1);
    c3 = static_cast<uint32_t>(product0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {c0, c1, c2, c3};
}

/// The normal quantiles of (i + 1/2) / 65536, rounded to multiples of 2^-14, so that the last bit of a libm's erfc does
/// not show. They ascend: each is the first multiple, from the one before it on, that ends no lower than its
/// probability.
static std::vector<float> makeQuantiles() {
  constexpr int kParts = 16384, kCount = 65536;
  std::vector<float> table(kCount);
  int multiple = -6 * kParts;
  for (int i = 0; i < kCount / 2; ++i) {
    while (0.5 * std::erfc(-(multiple + 0.5) / kParts / std::sqrt(2.0)) < (i + 0.5) / kCount)
      ++multiple;
    const double below = static_cast<double>(-multiple) / kParts;
    table[i] = static_cast<float>(-below);
    table[kCount - 1 - i] = static_cast<float>(below);
  }
  return table;
}

std::array<float, 8> NormalStream::block(uint64_t block) const {
  static const std::vector<float> quantiles = makeQuantiles();
  auto words = philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), stream, 0}, seed);
  std::array<float, 8> values;
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = quantiles[words[i] & 0xffff];
    values[2 * i + 1] = quantiles[words[i] >> 16];
  }
  return values;
}

} // namespace fagen::lab
