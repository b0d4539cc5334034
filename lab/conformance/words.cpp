// fagen: random words for conformance cases.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "words.h"

#include "lab/kernels/numeric.h"

#include <iterator>

namespace fagen::lab {

Words::Words(uint64_t seed, std::string_view name, unsigned round) : seed(seed), round(round) {
  Hash hash;
  for (char letter : name)
    hash.add(static_cast<unsigned char>(letter));
  stream = static_cast<uint32_t>(hash.value ^ hash.value >> 32);
}

uint32_t Words::next() {
  if (used == words.size()) {
    words = philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), stream, round}, seed);
    ++block;
    used = 0;
  }
  return words[used++];
}

uint32_t Words::floatOf(int low, int high) {
  const uint32_t exponent = static_cast<uint32_t>(127 + low) + below(static_cast<uint32_t>(high - low + 1));
  return (next() & 0x807fffffu) | exponent << 23;
}

uint32_t Words::anyFloat() {
  static constexpr uint32_t kSpecial[] = {
      0x00000000, 0x7f800000, 0x7fc00000, 0x7fffffff, 0x7f800001, 0x7fa12345, // 0, infinity, NaNs
      0x00000001, 0x00400000, 0x007fffff, 0x00800000, 0x00800001,             // subnormals, the smallest normal
      0x7f7fffff, 0x7f000000, 0x7effffff,                                     // the largest
      0x3f800000, 0x3f000000, 0x40000000, 0x3f7fffff, 0x3f800001, 0x4b000000, // 1, 1/2, 2, 2^23
      0x477fe000, 0x477ff000, 0x477fefff, 0x38800000, 0x38000000, 0x33800000, 0x33000000}; // the ends of f16
  const uint32_t sign = next() & 0x80000000u;
  switch (below(8)) {
  case 0:
    return sign | kSpecial[below(std::size(kSpecial))];
  case 1: // next to a special value or a power of two
    return sign | (((oneIn(2) ? kSpecial[below(std::size(kSpecial))] : below(255) << 23) + below(5) - 2) & 0x7fffffffu);
  case 2: // subnormal
    return sign | (next() & 0x7fffffu) >> below(24);
  case 3: // half way between two f16, and its neighbours
    return sign | ((asWord(floatOfF16(static_cast<uint16_t>(below(0x7c00)))) + 0x1000 + below(3) - 1) & 0x7fffffffu);
  case 4: // half way between two bf16, and its neighbours
    return sign | ((below(0x7f80) << 16 | 0x8000u) + below(3) - 1);
  case 5:
    return floatOf(-12, 12);
  default:
    return next();
  }
}

} // namespace fagen::lab
