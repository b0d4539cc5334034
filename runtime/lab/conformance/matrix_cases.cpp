// fagen: conformance of matrix instructions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conformance/accumulation.h"
#include "conformance/cases.h"
#include "kernels/numeric.h"

#include <fmt/format.h>

namespace fagen::lab {

namespace {

constexpr unsigned kLanes = 32, kThreads = 128, kGrid = 64;
constexpr unsigned kTiles = kGrid * kThreads / kLanes;

/// The operands of one instruction in plain order; N is 8 or 16.
struct Tile {
  uint16_t a[16][16], b[16][16]; ///< row, k; k, column
  uint32_t c[16][16];
};

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

/// Large products cancel each other but for one pair, which is small: what is cut of it beside the others shows.
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

constexpr const char *kInputs = "tiles of eleven kinds";
constexpr const char *kBound = "17 * 2^(e - 25) + 1 ulp";

ConformanceCase matrixCase(std::string name, std::function<Dot(const WordList &, size_t)> dot) {
  ConformanceCase c;
  c.functions = {name};
  c.symbol = "conformance_" + name;
  c.name = std::move(name);
  c.threads = kThreads;
  c.inputs = kInputs;
  c.bound = kBound;
  c.dot = std::move(dot);
  return c;
}

/// mma m16n8k16: twelve words of input and four of output a lane. MmaInstrs.td says which element is where.
ConformanceCase mmaCase(const char *name, DType dtype) {
  ConformanceCase c = matrixCase(name, [dtype](const WordList &in, size_t index) {
    const size_t lane = index / 4, warp = lane / kLanes * kLanes, g = lane % kLanes / 4, t = lane % 4;
    const size_t row = g + index % 4 / 2 * 8, column = 2 * t + index % 2;
    auto half = [&](size_t thread, size_t word, size_t k) {
      return static_cast<uint16_t>(in[12 * (warp + thread) + word] >> 16 * (k % 2));
    };
    Dot dot{.dtype = dtype, .half = false, .a = {}, .b = {}, .c = in[12 * lane + 8 + index % 4]};
    for (size_t k = 0; k < 16; ++k) {
      dot.a[k] = half(row % 8 * 4 + k % 8 / 2, row / 8 + k / 8 * 2, k);
      dot.b[k] = half(column * 4 + k % 8 / 2, 4 + k / 8, k);
    }
    return dot;
  });
  c.grid = kGrid;
  c.operands = 12;
  c.results = 4;
  c.inWords = size_t{kGrid} * kThreads * c.operands;
  c.outWords = size_t{kGrid} * kThreads * c.results;
  c.fill = [dtype](Words &random, unsigned, WordList &in) {
    Tile tile;
    for (unsigned index = 0; index < kTiles; ++index) {
      fillTile(random, index, dtype, false, tile);
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        uint32_t *words = &in[12 * (index * kLanes + lane)];
        const unsigned g = lane / 4, t = 2 * (lane % 4);
        for (unsigned i = 0; i < 4; ++i) {
          const uint16_t *pair = &tile.a[g + i % 2 * 8][t + i / 2 * 8];
          words[i] = pair[0] | uint32_t{pair[1]} << 16;
          words[8 + i] = tile.c[g + i / 2 * 8][t + i % 2];
        }
        for (unsigned i = 0; i < 2; ++i)
          words[4 + i] = tile.b[t + 8 * i][g] | uint32_t{tile.b[t + 8 * i + 1][g]} << 16;
      }
    }
  };
  return c;
}

/// wmma m16n16k16: a warp's A and B lie in memory as the loads want them; the accumulator begins with one value in all
/// elements, since no lane knows which elements it has. 260 words of input, 256 of output a warp.
ConformanceCase wmmaCase(DType dtype, bool half, bool byColumns) {
  constexpr size_t kIn = 260, kOut = 256;
  const char *type = dtype == DType::F16 ? "f16" : "bf16", *order = byColumns ? "col" : "row";
  ConformanceCase c = matrixCase(
      fmt::format("wmma_mma_{}_{}_{}", half ? "f16" : "f32", type, order), [=](const WordList &in, size_t index) {
        const uint32_t *words = &in[index / kOut * kIn];
        const size_t row = index % kOut / 16, column = index % 16;
        auto element = [&](size_t at) { return static_cast<uint16_t>(words[at / 2] >> 16 * (at % 2)); };
        Dot dot{.dtype = dtype, .half = half, .a = {}, .b = {}, .c = words[256]};
        for (size_t k = 0; k < 16; ++k) {
          dot.a[k] = element(row * 16 + k);
          dot.b[k] = element(256 + (byColumns ? column * 16 + k : k * 16 + column));
        }
        return dot;
      });
  c.functions.insert(c.functions.end(),
                     {fmt::format("wmma_load_a_{}", type), fmt::format("wmma_load_b_{}_{}", type, order),
                      fmt::format("wmma_store_d_{}", half ? "f16" : "f32")});
  c.grid = kTiles / 2;
  c.threads = kLanes;
  c.sharedBytes = 2048;
  c.operands = kIn;
  c.results = kOut;
  c.inWords = kTiles / 2 * kIn;
  c.outWords = kTiles / 2 * kOut;
  c.fill = [=](Words &random, unsigned, WordList &in) {
    Tile tile;
    for (unsigned index = 0; index < kTiles / 2; ++index) {
      fillTile(random, index, dtype, half, tile);
      uint32_t *words = &in[index * kIn];
      for (unsigned i = 0; i < 128; ++i) {
        words[i] = tile.a[i / 8][i % 8 * 2] | uint32_t{tile.a[i / 8][i % 8 * 2 + 1]} << 16;
        words[128 + i] = tile.b[i / 8][i % 8 * 2] | uint32_t{tile.b[i / 8][i % 8 * 2 + 1]} << 16;
      }
      words[256] = tile.c[0][0];
    }
  };
  return c;
}

} // namespace

void addMatrixCases(std::vector<ConformanceCase> &cases) {
  std::vector<ConformanceCase> added;
  added.push_back(mmaCase("mma_m16n8k16_f32_f16", DType::F16));
  added.push_back(mmaCase("mma_m16n8k16_f32_bf16", DType::BF16));
  for (bool byColumns : {false, true}) {
    added.push_back(wmmaCase(DType::F16, false, byColumns));
    added.push_back(wmmaCase(DType::BF16, false, byColumns));
    added.push_back(wmmaCase(DType::F16, true, byColumns));
  }
  for (ConformanceCase &c : added) {
    c.judge = [dot = c.dot](const WordList &in, const WordList &out, std::vector<Deviation> &deviations) {
      for (size_t i = 0; i < out.size(); ++i)
        deviations[i] = judgeDot(dot(in, i), out[i]);
    };
    cases.push_back(std::move(c));
  }
}

} // namespace fagen::lab
