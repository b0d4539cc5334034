// fagen: operands of matrix instructions for conformance cases: eleven kinds, from normal values to overflow.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tiles.h"
#include "lab/kernels/numeric.h"

namespace fagen::lab {

namespace {

/// About normal: sums of four uniform values, exact in f32.
float nearNormal(Words &random) {
  int sum = -131070;
  for (int i = 0; i < 2; ++i) {
    const uint32_t word = random.next();
    sum += static_cast<int>(word & 0xffff) + static_cast<int>(word >> 16);
  }
  return static_cast<float>(sum) * 0x1p-15f;
}

enum class Tiles {
  Normal,
  NormalC,
  Wide,
  Cancelling,
  Remainder,
  LargeC,
  SmallC,
  Subnormal,
  Sparse,
  Special,
  Largest,
  Count
};

/// Of what operands and accumulators of a kind of tile are made.
class Filler {
public:
  Filler(Words &random, DType dtype, bool half, Tiles kind) : random(random), dtype(dtype), half(half), kind(kind) {}

  uint16_t operand() {
    switch (kind) {
    case Tiles::Wide:
      return dtype == DType::F16 ? finite(random.anyHalf()) : bf16Of(-30, 30);
    case Tiles::Subnormal:
      return random.oneIn(2) ? subnormal() : halfOfFloat(dtype, nearNormal(random));
    case Tiles::Sparse:
      return random.oneIn(4) ? halfOfFloat(dtype, nearNormal(random)) : static_cast<uint16_t>(random.next() & 0x8000);
    case Tiles::Special:
      return random.oneIn(64) ? random.anyHalf() | infinity() : halfOfFloat(dtype, nearNormal(random));
    case Tiles::Largest:
      return dtype == DType::F16 ? static_cast<uint16_t>(0x7800 | (random.next() & 0x83ff)) : bf16Of(58, 64);
    default:
      return halfOfFloat(dtype, nearNormal(random));
    }
  }

  uint32_t accumulator() {
    if (half)
      return halfAccumulator();
    switch (kind) {
    case Tiles::Normal:
      return 0;
    case Tiles::Wide:
      return random.floatOf(-40, 40);
    case Tiles::LargeC:
      return random.floatOf(4, 28);
    case Tiles::SmallC:
    case Tiles::Remainder:
      return random.floatOf(-40, -1);
    case Tiles::Subnormal:
      return random.next() & (random.oneIn(2) ? 0x807fffffu : 0x80ffffffu);
    case Tiles::Sparse:
      return random.oneIn(2) ? random.next() & 0x80000000u : random.floatOf(-30, 0);
    case Tiles::Special:
      return random.oneIn(32) ? random.anyFloat() : asWord(nearNormal(random));
    case Tiles::Largest:
      return random.floatOf(120, 127);
    default:
      return asWord(nearNormal(random) * 4);
    }
  }

private:
  uint16_t infinity() const { return dtype == DType::F16 ? 0x7c00 : 0x7f80; }
  uint16_t finite(uint16_t bits) const {
    return (bits & infinity()) == infinity() ? static_cast<uint16_t>(bits ^ 0x4000) : bits;
  }
  uint16_t bf16Of(int low, int high) { return static_cast<uint16_t>(random.floatOf(low, high) >> 16); }
  uint16_t subnormal() { return static_cast<uint16_t>(random.next() & (dtype == DType::F16 ? 0x83ffu : 0x807fu)); }
  uint32_t halfAccumulator() {
    if (kind == Tiles::Normal)
      return 0;
    if (kind == Tiles::Special && random.oneIn(16))
      return random.anyHalf();
    if (kind == Tiles::Wide || kind == Tiles::LargeC || kind == Tiles::Largest)
      return finite(random.anyHalf());
    if (kind == Tiles::Subnormal || kind == Tiles::SmallC || kind == Tiles::Remainder)
      return random.next() & 0x83ff;
    return f16OfFloat(nearNormal(random) * 4);
  }

  Words &random;
  DType dtype;
  bool half;
  Tiles kind;
};

/// Large products cancel each other but for one pair, which is small: what is cut of it among the others shows.
void leaveRemainder(Words &random, DType dtype, Tile &tile) {
  const unsigned small = 2 * random.below(8);
  auto set = [&](uint16_t &value, bool isSmall) {
    const uint32_t bits = isSmall ? random.floatOf(-11, -1) : random.floatOf(4, 11);
    value = halfOfFloat(dtype, asFloat(bits & 0xffff0000u)); // fraction bits that both types have
  };
  for (unsigned k = 0; k < 16; k += 2)
    for (unsigned i = 0; i < 16; ++i) {
      set(tile.a[i][k], k == small);
      set(tile.b[k][i], k == small);
      tile.a[i][k + 1] = tile.a[i][k] ^ 0x8000;
      tile.b[k + 1][i] = tile.b[k][i];
      if (k == small)
        set(tile.a[i][k + 1], true);
    }
}

/// Products with k odd cancel those before them, but for some.
void cancel(Words &random, Tile &tile) {
  for (unsigned k = 0; k < 16; k += 2)
    for (unsigned i = 0; i < 16; ++i) {
      if (!random.oneIn(8))
        tile.a[i][k + 1] = tile.a[i][k] ^ 0x8000;
      if (!random.oneIn(8))
        tile.b[k + 1][i] = tile.b[k][i];
    }
}

constexpr uint8_t kByteNan = 0x7f, kByteSign = 0x80;

/// Of e4m3, with a field of the exponent from `low` to `high`.
uint8_t byteOf(Words &random, unsigned low, unsigned high) {
  const unsigned field = low + random.below(high - low + 1);
  const auto byte = static_cast<uint8_t>((random.next() & kByteSign) | field << 3 | (random.next() & 7));
  return (byte & kByteNan) == kByteNan ? byte ^ 1 : byte;
}

uint8_t byteFor(Words &random, Tiles kind) {
  switch (kind) {
  case Tiles::Wide:
    return byteOf(random, 0, 15);
  case Tiles::Subnormal:
    return random.oneIn(2) ? byteOf(random, 0, 0) : byteOf(random, 4, 8);
  case Tiles::Sparse:
    return random.oneIn(4) ? byteOf(random, 4, 8) : static_cast<uint8_t>(random.next() & kByteSign);
  case Tiles::Special:
    return random.oneIn(256) ? static_cast<uint8_t>(random.next() | kByteNan) : byteOf(random, 4, 8);
  case Tiles::Largest:
    return byteOf(random, 13, 15);
  default:
    return byteOf(random, 4, 8);
  }
}

/// Products with k odd cancel those before them, but for some: of `small` ones where that is below the depth.
void cancelBytes(Words &random, unsigned small, ByteTile &tile) {
  for (unsigned k = 0; k < 32; k += 2) {
    for (auto &row : tile.a) {
      row[k] = byteOf(random, k == small ? 1 : 11, k == small ? 6 : 14);
      row[k + 1] = k == small || random.oneIn(8) ? byteOf(random, 1, 6) : row[k] ^ kByteSign;
    }
    for (auto &column : tile.b) {
      column[k] = byteOf(random, k == small ? 1 : 11, k == small ? 6 : 14);
      column[k + 1] = column[k];
    }
  }
}

} // namespace

void fillTile(Words &random, unsigned index, DType dtype, bool half, Tile &tile) {
  const auto kind = static_cast<Tiles>(index % static_cast<unsigned>(Tiles::Count));
  Filler filler(random, dtype, half, kind);
  for (unsigned i = 0; i < 16; ++i)
    for (unsigned k = 0; k < 16; ++k) {
      tile.a[i][k] = filler.operand();
      tile.b[k][i] = filler.operand();
      tile.c[i][k] = filler.accumulator();
    }
  if (kind == Tiles::Cancelling)
    cancel(random, tile);
  if (kind == Tiles::Remainder)
    leaveRemainder(random, dtype, tile);
}

void fillBytes(Words &random, unsigned index, ByteTile &tile) {
  const auto kind = static_cast<Tiles>(index % static_cast<unsigned>(Tiles::Count));
  Filler filler(random, DType::F16, false, kind);
  for (auto &row : tile.a)
    for (uint8_t &byte : row)
      byte = byteFor(random, kind);
  for (auto &column : tile.b)
    for (uint8_t &byte : column)
      byte = byteFor(random, kind);
  for (auto &row : tile.c)
    for (uint32_t &word : row)
      word = filler.accumulator();
  if (kind == Tiles::Cancelling || kind == Tiles::Remainder)
    cancelBytes(random, kind == Tiles::Remainder ? 2 * random.below(16) : 32, tile);
}

} // namespace fagen::lab
