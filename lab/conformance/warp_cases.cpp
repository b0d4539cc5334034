// fagen: conformance of barriers, shuffles, ldmatrix, and of who a thread is.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cases.h"

#include <algorithm>

namespace fagen::lab {

namespace {

ConformanceCase threadCase(const char *name, const char *function, const char *symbol, size_t operands,
                           size_t results) {
  ConformanceCase c;
  c.name = name;
  c.functions = {function};
  c.symbol = symbol;
  c.grid = kGrid;
  c.threads = kThreads;
  c.inWords = kAll * operands;
  c.outWords = kAll * results;
  c.operands = operands;
  c.results = results;
  c.fill = [](Words &random, unsigned, WordList &in) {
    std::generate(in.begin(), in.end(), [&] { return random.oneIn(8) ? random.anyFloat() : random.next(); });
  };
  return c;
}

uint32_t stirred(uint32_t own, uint32_t other) { return (own ^ other) * 2654435761u + 1; }

/// Threads of a group (CTA or warp) exchange eight times. words[0] is the thread's number, words[1] whose it takes.
ConformanceCase barrierCase(const char *name, const char *symbol, unsigned group) {
  ConformanceCase c = threadCase(name, name, symbol, 4, 1);
  c.inputs = "eight exchanges of random words with random partners";
  c.sharedBytes = 8192;
  c.fill = [group](Words &random, unsigned, WordList &in) {
    for (unsigned t = 0; t < kAll; ++t) {
      in[4 * t] = random.next();
      in[4 * t + 1] = t % kThreads / group * group + random.below(group);
    }
  };
  c.expect = [](const WordList &in, WordList &out) {
    for (unsigned first = 0; first < kAll; first += kThreads)
      for (unsigned t = 0; t < kThreads; ++t)
        out[first + t] = in[4 * (first + t)];
    for (int round = 0; round < 8; ++round) {
      const WordList before = out;
      for (unsigned t = 0; t < kAll; ++t)
        out[t] = stirred(before[t], before[t / kThreads * kThreads + in[4 * t + 1]]);
    }
  };
  return c;
}

/// The first half of a CTA hands words to the second one, eight times.
ConformanceCase handOverCase() {
  ConformanceCase c = barrierCase("named_barrier_arrive", "conformance_named_barrier_arrive", kThreads);
  c.inputs = "eight times, words of one half to random threads of the other";
  c.expect = [](const WordList &in, WordList &out) {
    for (unsigned t = 0; t < kAll; ++t)
      out[t] = in[4 * t];
    for (uint32_t round = 0; round < 8; ++round) {
      const WordList before = out;
      for (unsigned t = 0; t < kAll; ++t) {
        const bool receives = t % kThreads >= kThreads / 2;
        const unsigned from = receives ? t / kThreads * kThreads + in[4 * t + 1] % (kThreads / 2) : t;
        out[t] = stirred(before[t], before[from] + round);
      }
    }
  };
  return c;
}

/// Lane l wrote row l of its warp, and gives the address of row words[1]: of row l % 8 of matrix l / 8.
ConformanceCase matrixCase(const char *name, const char *symbol, bool transpose) {
  ConformanceCase c = threadCase(name, name, symbol, 8, 4);
  c.inputs = "random words, rows in random order";
  c.sharedBytes = 8192;
  auto fill = c.fill;
  c.fill = [fill](Words &random, unsigned round, WordList &in) {
    fill(random, round, in);
    for (unsigned t = 0; t < kAll; ++t)
      in[8 * t + 1] = random.below(kLanes);
  };
  c.expect = [transpose](const WordList &in, WordList &out) {
    for (unsigned warp = 0; warp < kAll; warp += kLanes) {
      auto element = [&](unsigned matrix, unsigned row, unsigned column) {
        const uint32_t source = in[8 * (warp + 8 * matrix + row) + 1];
        return in[8 * (warp + source) + 4 + column / 2] >> column % 2 * 16 & 0xffff;
      };
      for (unsigned lane = 0; lane < kLanes; ++lane)
        for (unsigned matrix = 0; matrix < 4; ++matrix) {
          const unsigned row = lane / 4, column = 2 * (lane % 4);
          const uint32_t low = transpose ? element(matrix, column, row) : element(matrix, row, column);
          const uint32_t high = transpose ? element(matrix, column + 1, row) : element(matrix, row, column + 1);
          out[4 * (warp + lane) + matrix] = low | high << 16;
        }
    }
  };
  return c;
}

ConformanceCase shuffleCase() {
  ConformanceCase c = threadCase("shuffle_xor", "shuffle_xor", "conformance_shuffle_xor", 1, 32);
  c.inputs = "random words, all 32 masks";
  c.expect = [](const WordList &in, WordList &out) {
    for (unsigned t = 0; t < kAll; ++t)
      for (unsigned mask = 0; mask < kLanes; ++mask)
        out[t * kLanes + mask] = in[t ^ mask];
  };
  return c;
}

ConformanceCase voteCase() {
  ConformanceCase c = threadCase("any", "any", "conformance_any", 1, 32);
  c.inputs = "words of which few have bits set, all 32 bits";
  c.fill = [](Words &random, unsigned, WordList &in) {
    std::generate(in.begin(), in.end(), [&] { return random.oneIn(32) ? random.next() : 0; });
  };
  c.expect = [](const WordList &in, WordList &out) {
    for (unsigned t = 0; t < kAll; ++t)
      for (unsigned bit = 0; bit < 32; ++bit) {
        out[t * 32 + bit] = 0;
        for (unsigned lane = 0; lane < kLanes; ++lane)
          out[t * 32 + bit] |= in[t / kLanes * kLanes + lane] >> bit & 1;
      }
  };
  return c;
}

ConformanceCase indexCase() {
  ConformanceCase c =
      threadCase("thread_index, cta_index, lane_index, warp_index", "thread_index", "conformance_threads", 1, 4);
  c.functions.insert(c.functions.end(), {"cta_index", "lane_index", "warp_index"});
  c.inputs = "every thread of 64 CTAs";
  c.expect = [](const WordList &, WordList &out) {
    for (unsigned t = 0; t < kAll; ++t) {
      const uint32_t values[4] = {t % kThreads, t / kThreads, t % kLanes, t % kThreads / kLanes};
      std::copy_n(values, 4, &out[4 * t]);
    }
  };
  return c;
}

/// Clocks and places are nobody's to predict: that clocks do not go back, and that the SM's number is small, is.
ConformanceCase clockCase() {
  ConformanceCase c =
      threadCase("clock32, clock64, global_nanoseconds, sm_index", "clock64", "conformance_clocks", 1, 1);
  c.functions.insert(c.functions.end(), {"clock32", "global_nanoseconds", "sm_index"});
  c.inputs = "every thread of 64 CTAs; 1 for what holds of each";
  c.expect = [](const WordList &, WordList &out) { std::fill_n(out.begin(), kAll, 0xfu); };
  return c;
}

} // namespace

void addWarpCases(std::vector<ConformanceCase> &cases) {
  cases.push_back(barrierCase("cta_barrier", "conformance_cta_barrier", kThreads));
  cases.push_back(barrierCase("warp_barrier", "conformance_warp_barrier", kLanes));
  cases.push_back(barrierCase("named_barrier", "conformance_named_barrier", kThreads / 2));
  cases.push_back(handOverCase());
  cases.push_back(clockCase());
  cases.push_back(shuffleCase());
  cases.push_back(voteCase());
  cases.push_back(matrixCase("ldmatrix_x4", "conformance_ldmatrix_x4", false));
  cases.push_back(matrixCase("ldmatrix_x4_trans", "conformance_ldmatrix_x4_trans", true));
  cases.push_back(indexCase());
}

} // namespace fagen::lab
