// fagen: random numbers that are the same on every machine.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The standard library's engines are fixed by the standard, its distributions are not: nothing of them is used here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

namespace fagen::random {

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  /// 0 to count - 1; count is small, so that the remainder's bias is none to speak of.
  unsigned below(size_t count) { return unsigned(next() % count); }
  unsigned between(unsigned low, unsigned high) { return low + below(high - low + 1); }
  bool percent(unsigned chance) { return below(100) < chance; }

  template <typename Range> auto &pick(Range &&range) { return std::begin(range)[below(std::size(range))]; }

  template <typename Range> void shuffle(Range &range) {
    for (size_t left = std::size(range); left > 1; --left)
      std::swap(std::begin(range)[left - 1], std::begin(range)[below(left)]);
  }

private:
  uint64_t state;
};

} // namespace fagen::random
