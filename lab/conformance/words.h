// fagen: random words for conformance cases, rich in the values where arithmetic goes wrong.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/support/random.h"

#include <bit>
#include <string_view>

namespace fagen::lab {

/// A stream of random words by seed, case and round. Integer arithmetic only: the same on every machine.
class Words {
public:
  Words(uint64_t seed, std::string_view name, unsigned round);

  uint32_t next();
  /// 0 to count - 1.
  uint32_t below(uint32_t count) { return static_cast<uint32_t>(uint64_t{next()} * count >> 32); }
  bool oneIn(uint32_t count) { return below(count) == 0; }

  /// A float of any kind: NaNs with payloads, infinities, zeros, subnormals, values half way between two f16 or two
  /// bf16, neighbours of powers of two, all exponents, exponents near zero.
  uint32_t anyFloat();
  /// Finite, exponent from `low` to `high`.
  uint32_t floatOf(int low, int high);
  /// A 16-bit value of any kind.
  uint16_t anyHalf() { return static_cast<uint16_t>(next()); }

private:
  uint64_t seed;
  uint32_t stream, round;
  uint64_t block = 0;
  unsigned used = 4;
  std::array<uint32_t, 4> words{};
};

/// FNV-1a, 64 bits.
class Hash {
public:
  void add(uint32_t word) {
    for (int i = 0; i < 4; ++i)
      value = (value ^ (word >> 8 * i & 0xff)) * 0x100000001b3u;
  }
  uint64_t value = 0xcbf29ce484222325u;
};

inline float asFloat(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t asWord(float value) { return std::bit_cast<uint32_t>(value); }

} // namespace fagen::lab
