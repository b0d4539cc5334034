// fagen: mul.cu and dec.cu on a GPU, with nothing of fagen: each launch twice, against sums in double.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dec.h"
#include "mul.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_fp16.h>
#include <functional>
#include <random>
#include <vector>

namespace {

void require(const char *problem) {
  if (!problem)
    return;
  std::printf("error: %s\n", problem);
  std::exit(1);
}

void require(cudaError_t error) { require(error == cudaSuccess ? nullptr : cudaGetErrorString(error)); }

struct Tensor {
  std::vector<__half> host;
  __half *device = nullptr;

  Tensor(int64_t count, unsigned seed) : host(count) {
    std::mt19937 random(seed);
    std::normal_distribution<float> draw;
    for (__half &value : host)
      value = __float2half(seed ? draw(random) : NAN);
    require(cudaMalloc(&device, 2 * count));
    require(cudaMemcpy(device, host.data(), 2 * count, cudaMemcpyHostToDevice));
  }
  double operator[](int64_t i) const { return __half2float(host[i]); }
  void read() { require(cudaMemcpy(host.data(), device, 2 * host.size(), cudaMemcpyDeviceToHost)); }
};

void *zeros(size_t bytes) {
  void *found = nullptr;
  require(cudaMalloc(&found, bytes + 1));
  require(cudaMemset(found, 0, bytes));
  return found;
}

/// c = a b^T. Gives the largest error.
double multiply(void *workspace, int m, int n, int k) {
  Tensor a(int64_t(m) * k, 1), b(int64_t(n) * k, 2), c(int64_t(m) * n, 0);
  mul_args args = {};
  args.a = a.device, args.b = b.device, args.c = c.device, args.M = m, args.N = n, args.K = k;
  require(mul_run(&args, workspace, nullptr));
  require(cudaDeviceSynchronize());
  c.read();
  double worst = 0;
  for (int64_t at = 0; at < int64_t(m) * n; at += at < 4096 ? 1 : 97) {
    double sum = 0;
    for (int i = 0; i < k; ++i)
      sum += a[at / n * k + i] * b[at % n * k + i];
    worst = std::fmax(worst, std::isfinite(c[at]) ? std::fabs(sum - c[at]) / std::sqrt(double(k)) : INFINITY);
  }
  return worst;
}

/// Attention of a few rows whose head and row have their places exchanged in memory: q[b, row, head, :].
double decode(void *workspace, int keys) {
  constexpr int kBatch = 2, kHeads = 6, kGroup = 3, kRows = 5, kKv = 2, d = 128;
  Tensor q(kBatch * kRows * kHeads * d, 1), k(int64_t(kBatch) * kKv * keys * d, 2),
      v(int64_t(kBatch) * kKv * keys * d, 3), o(kBatch * kRows * kHeads * d, 0);
  float *const lse = static_cast<float *>(zeros(4 * kBatch * kHeads * kRows));
  dec_args args = {};
  args.q = q.device, args.k = k.device, args.v = v.device, args.o = o.device, args.lse = lse;
  for (int64_t *stride : {args.q_stride, args.o_stride})
    stride[0] = kRows * kHeads * d, stride[1] = d, stride[2] = kHeads * d;
  args.B = kBatch, args.HKV = kKv, args.G = kGroup, args.SQ = kRows, args.SKV = keys, args.S = 4;
  args.scale = 1 / std::sqrt(float(d)), args.scale_log2 = args.scale * 1.44269504f;
  require(dec_run(&args, workspace, nullptr));
  require(cudaDeviceSynchronize());
  o.read();
  double worst = 0;
  for (int64_t row = 0; row < kBatch * kRows * kHeads; ++row) {
    const int64_t head = row % kHeads, from = (row / kHeads / kRows * kKv + head / kGroup) * keys * d;
    std::vector<double> sum(d);
    double total = 0;
    for (int key = 0; key < keys; ++key) {
      double score = 0;
      for (int i = 0; i < d; ++i)
        score += q[row * d + i] * k[from + int64_t(key) * d + i];
      const double p = std::exp(score * args.scale);
      total += p;
      for (int i = 0; i < d; ++i)
        sum[i] += p * v[from + int64_t(key) * d + i];
    }
    for (int i = 0; i < d; ++i) {
      const double found = o[row * d + i];
      worst = std::fmax(worst, std::isfinite(found) ? std::fabs(found - sum[i] / total) : INFINITY);
    }
  }
  return worst;
}

} // namespace

int main() {
  int wrong = 0;
  size_t bytes = 0, zero_bytes = 0;
  mul_args m = {};
  m.M = m.N = m.K = 1024;
  require(mul_workspace(&m, &bytes, &zero_bytes));
  void *const counter = zeros(bytes);
  dec_args s = {};
  s.B = 2, s.HKV = 2, s.G = 3, s.SQ = 5, s.SKV = 3000, s.S = 4;
  require(dec_workspace(&s, &bytes, &zero_bytes));
  void *const parts = zeros(bytes);
  for (const std::function<double()> &run : std::initializer_list<std::function<double()>>{
           [&] { return multiply(counter, 1000, 520, 264); }, [&] { return multiply(counter, 1024, 1024, 1024); },
           [&] { return decode(parts, 3000); }, [&] { return decode(parts, 77); }}) {
    const double error = run();
    std::printf("largest error %.3g\n", error);
    wrong += error > 0.01;
  }
  std::printf("%s: %d of 4 wrong\n", wrong ? "FAIL" : "PASS", wrong);
  return wrong != 0;
}
