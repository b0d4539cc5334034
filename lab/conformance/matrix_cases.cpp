// fagen: conformance of matrix instructions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "accumulation.h"
#include "cases.h"
#include "tiles.h"

#include <fmt/format.h>

namespace fagen::lab {

namespace {

constexpr unsigned kTiles = kGrid * kThreads / kLanes;

ConformanceCase matrixCase(std::string name, std::function<Dot(const WordList &, size_t)> dot) {
  ConformanceCase c;
  c.functions = {name};
  c.symbol = "conformance_" + name;
  c.name = std::move(name);
  c.threads = kThreads;
  c.inputs = kTileInputs;
  c.bound = kTileBound;
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
    Dot dot{.factor = factorOf(dtype), .half = false, .a = {}, .b = {}, .c = in[12 * lane + 8 + index % 4]};
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
        Dot dot{.factor = factorOf(dtype), .half = half, .a = {}, .b = {}, .c = words[256]};
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
