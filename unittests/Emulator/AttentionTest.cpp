// fagen: a whole attention kernel made of the device library, against the plain formula.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Kernels.h"

#include <chrono>
#include <cmath>
#include <fagen/device/params.h>
#include <random>

namespace fagen::emulator::attentionTest {
namespace {

constexpr int kHeadDim = 64;

float decode(unsigned short bits) {
  static const std::vector<float> values = [] {
    std::vector<float> all(65536);
    for (int i = 0; i < 65536; ++i) {
      const int exponent = i >> 10 & 31;
      const float magnitude =
          exponent == 0 ? std::ldexp(float(i & 1023), -24) : std::ldexp(float(1024 + (i & 1023)), exponent - 25);
      all[i] = i & 0x8000 ? -magnitude : magnitude;
    }
    return all;
  }();
  return values[bits];
}

/// Uniform in (-2, 2): sign, exponents 13 to 15, fraction.
std::vector<unsigned short> draw(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<unsigned short> values(count);
  for (unsigned short &value : values)
    value = static_cast<unsigned short>((random() & 0x83ff) | (13 + random() % 3) << 10);
  return values;
}

struct Problem {
  int heads, seqQ, seqKv;
  std::vector<unsigned short> q = draw(size_t(heads * seqQ * kHeadDim), 1);
  std::vector<unsigned short> k = draw(size_t(heads * seqKv * kHeadDim), 2);
  std::vector<unsigned short> v = draw(size_t(heads * seqKv * kHeadDim), 3);
  std::vector<unsigned short> o = std::vector<unsigned short>(q.size(), 0xffff);
  std::vector<float> lse = std::vector<float>(size_t(heads * seqQ), NAN);

  Report run(const Options &options) {
    device::AttentionParams params = {};
    params.q = q.data(), params.k = k.data(), params.v = v.data(), params.o = o.data(), params.lse = lse.data();
    const auto set = [](long long(&stride)[3], int rows) {
      stride[0] = 0, stride[1] = rows * kHeadDim, stride[2] = kHeadDim;
    };
    set(params.q_stride, seqQ), set(params.k_stride, seqKv), set(params.v_stride, seqKv), set(params.o_stride, seqQ);
    params.lse_stride[1] = seqQ;
    params.batch = 1, params.heads = params.kv_heads = heads, params.heads_per_kv = 1;
    params.seq_q = seqQ, params.seq_kv = seqKv;
    params.scale = 0.125f, params.scale_log2 = 0.125f * 1.44269504f;
    const Launch launch = {"attention",
                           unsigned((seqQ + 63) / 64 * heads),
                           128,
                           5 * 64 * kHeadDim * 2,
                           {{q.data(), 2 * q.size(), false, "q"},
                            {k.data(), 2 * k.size(), false, "k"},
                            {v.data(), 2 * v.size(), false, "v"},
                            {o.data(), 2 * o.size(), true, "o"},
                            {lse.data(), 4 * lse.size(), true, "lse"}}};
    return kernels("attention.cu").launch(launch, &params, sizeof(params), options);
  }

  /// The largest error of O and of LSE.
  std::pair<double, double> errors() const {
    double oError = 0.0, lseError = 0.0;
    for (int row = 0; row < heads * seqQ; ++row) {
      const int head = row / seqQ;
      std::vector<double> weight(seqKv);
      double sum = 0.0;
      for (int key = 0; key < seqKv; ++key) {
        double score = 0.0;
        for (int d = 0; d < kHeadDim; ++d)
          score += double(decode(q[row * kHeadDim + d])) * decode(k[(head * seqKv + key) * kHeadDim + d]);
        sum += weight[key] = std::exp(score * 0.125);
      }
      lseError = std::max(lseError, std::abs(std::log(sum) - lse[row]));
      for (int d = 0; d < kHeadDim; ++d) {
        double expected = 0.0;
        for (int key = 0; key < seqKv; ++key)
          expected += weight[key] / sum * decode(v[(head * seqKv + key) * kHeadDim + d]);
        const double error = std::abs(expected - decode(o[row * kHeadDim + d]));
        oError = error <= oError ? oError : error; // a NaN stays
      }
    }
    return {oError, lseError};
  }
};

TEST(Attention, EqualsTheFormulaWheneverCopiesLandAndInAnyOrder) {
  for (const auto &[seqQ, seqKv] : {std::pair{64, 64}, {64, 192}, {1, 1}, {100, 77}, {129, 130}})
    for (const Options::Landing landing : {Options::Latest, Options::Earliest, Options::Random})
      for (const uint64_t seed : {0, 5}) {
        Problem problem{2, seqQ, seqKv};
        const Report report = problem.run({.landing = landing, .seed = seed});
        ASSERT_TRUE(report.ok) << text(report);
        const auto [oError, lseError] = problem.errors();
        EXPECT_LT(oError, 2e-3) << seqQ << " x " << seqKv;
        EXPECT_LT(lseError, 1e-5) << seqQ << " x " << seqKv;
      }
}

TEST(Attention, IsFastEnoughForThousandsOfCases) {
  Problem problem{2, 256, 256};
  ASSERT_TRUE(problem.run({}).ok);
  const auto begin = std::chrono::steady_clock::now();
  const Report report = problem.run({});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(report.ok) << text(report);
  EXPECT_LT(problem.errors().first, 2e-3);
  RecordProperty("milliseconds", std::to_string(1e3 * seconds.count()));
  std::printf("%d heads, %d x %d: %.1f ms, %.0f thousand instructions\n", 2, 256, 256, 1e3 * seconds.count(),
              1e-3 * double(report.instructions));
}

} // namespace
} // namespace fagen::emulator::attentionTest
