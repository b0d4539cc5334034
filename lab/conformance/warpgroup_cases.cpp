// fagen: conformance of products of warp groups.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of small whole numbers are exact, so a wrong place of one element shows; they take every N. Products of any
// numbers, of one shape, say how the tensor cores add.
#include "accumulation.h"
#include "cases.h"
#include "tiles.h"
#include "whole_products.h"

#include <fmt/format.h>

namespace fagen::lab {

namespace {

constexpr unsigned kRows = 64;

/// `name`: "f16_shared_128"; N goes from `first` by `step` to `last`.
ConformanceCase exactCase(const char *name, const char *type, unsigned k, unsigned first, unsigned step,
                          unsigned last) {
  ConformanceCase c;
  c.name = fmt::format("wgmma {}", name);
  c.functions = {fmt::format("wgmma_f32_{}", type),
                 "wgmma_fence",
                 "wgmma_commit",
                 "wgmma_wait",
                 "pin_registers",
                 "matrix_descriptor",
                 "descriptor_mode",
                 "advance"};
  c.symbol = fmt::format("conformance_wgmma_{}", name);
  c.kernels = KernelText::Sm90a;
  c.inputs = first == last ? fmt::format("whole numbers; N {}, K {}", first, k)
                           : fmt::format("whole numbers; N from {} to {} by {}, K {}", first, last, step, k);
  c.grid = (last - first) / step + 1;
  c.threads = kThreads;
  c.sharedBytes = 2 * k * (kRows + 256) + 2048;
  c.inWords = c.operands = 1;
  for (unsigned n = first; n <= last; n += step)
    c.outWords += size_t{kThreads} * n / 2;
  c.fill = [](Words &random, unsigned, WordList &in) { in[0] = random.next(); };
  c.operands = c.outWords;
  c.expect = [=](const WordList &in, WordList &out) {
    size_t before = 0;
    for (unsigned n = first; n <= last; n += step) {
      expectProduct(in[0], k, n, &out[before]);
      before += size_t{kThreads} * n / 2;
    }
  };
  return c;
}

/// m64n8k16, K-major B in shared memory: nine words of input and four of output a thread.
ConformanceCase boundedCase(DType dtype) {
  const std::string name = fmt::format("wgmma_f32_{}", dtype == DType::F16 ? "f16" : "bf16");
  ConformanceCase c;
  c.name = name;
  c.functions = {name};
  c.symbol = "conformance_" + name;
  c.kernels = KernelText::Sm90a;
  c.grid = kGrid;
  c.threads = kThreads;
  c.sharedBytes = 1024;
  c.inputs = kTileInputs;
  c.bound = kTileBound;
  c.operands = 9;
  c.results = 4;
  c.inWords = size_t{kGrid} * kThreads * c.operands;
  c.outWords = size_t{kGrid} * kThreads * c.results;
  c.dot = [dtype](const WordList &in, size_t index) {
    const size_t thread = index / 4, group = thread / kThreads * kThreads, warp = thread / 32 * 32;
    const size_t row = thread % 32 / 4 + index % 4 / 2 * 8, column = thread % 4 * 2 + index % 2;
    Dot dot{.factor = factorOf(dtype), .half = false, .a = {}, .b = {}, .c = in[9 * thread + 4 + index % 4]};
    for (size_t k = 0; k < 16; ++k) {
      const size_t lane = row % 8 * 4 + k % 8 / 2;
      dot.a[k] = static_cast<uint16_t>(in[9 * (warp + lane) + row / 8 + k / 8 * 2] >> 16 * (k % 2));
      dot.b[k] = static_cast<uint16_t>(in[9 * (group + column * 8 + k / 2) + 8] >> 16 * (k % 2));
    }
    return dot;
  };
  c.fill = [dtype](Words &random, unsigned, WordList &in) {
    Tile tile;
    for (unsigned warp = 0; warp < kGrid * kThreads / 32; ++warp) {
      fillTile(random, warp / 4, dtype, false, tile); // the four warps of a group: one kind
      for (unsigned lane = 0; lane < 32; ++lane) {
        uint32_t *words = &in[9 * (warp * 32 + lane)];
        const unsigned g = lane / 4, t = 2 * (lane % 4);
        for (unsigned i = 0; i < 4; ++i) {
          const uint16_t *pair = &tile.a[g + i % 2 * 8][t + i / 2 * 8];
          words[i] = pair[0] | uint32_t{pair[1]} << 16;
          words[4 + i] = tile.c[g + i / 2 * 8][t + i % 2];
        }
      }
      if (warp % 4 == 0)
        for (unsigned word = 0; word < 64; ++word)
          in[9 * (warp * 32 + word) + 8] = tile.b[word % 8 * 2][word / 8] | uint32_t{tile.b[word % 8 * 2 + 1][word / 8]}
                                                                                << 16;
    }
  };
  c.judge = [dot = c.dot](const WordList &in, const WordList &out, std::vector<Deviation> &deviations) {
    for (size_t i = 0; i < out.size(); ++i)
      deviations[i] = judgeDot(dot(in, i), out[i]);
  };
  return c;
}

} // namespace

void addWarpGroupCases(std::vector<ConformanceCase> &cases) {
  cases.push_back(exactCase("f16_shared_128", "f16", 64, 8, 8, 256));
  cases.push_back(exactCase("f16_registers_across_128", "f16", 32, 8, 8, 256));
  cases.push_back(exactCase("bf16_transposed_128", "bf16", 32, 8, 8, 256));
  cases.push_back(exactCase("bf16_registers_128", "bf16", 64, 8, 8, 256));
  cases.push_back(exactCase("f16_shared_64", "f16", 32, 8, 40, 248));
  cases.push_back(exactCase("f16_shared_32", "f16", 16, 8, 40, 248));
  cases.push_back(exactCase("f16_transposed_128", "f16", 32, 8, 40, 248));
  cases.push_back(exactCase("bf16_registers_across_128", "bf16", 48, 8, 40, 248));
  cases.push_back(exactCase("f16_registers_across_64", "f16", 32, 96, 8, 96));
  cases.push_back(boundedCase(DType::F16));
  cases.push_back(boundedCase(DType::BF16));
}

} // namespace fagen::lab
