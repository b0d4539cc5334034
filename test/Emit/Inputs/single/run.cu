// fagen: attn.h and attn.cu on a GPU, with nothing of fagen: each problem twice, against sums in double.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <cuda_fp16.h>
#include <random>
#include <vector>

namespace {

struct Shape {
  int64_t batch, heads, kv_heads, seq_q, seq_kv, head_dim;
  int causal;
};

void require(const char *problem) {
  if (!problem)
    return;
  std::printf("error: %s\n", problem);
  std::exit(1);
}

void require(cudaError_t error) { require(error == cudaSuccess ? nullptr : cudaGetErrorString(error)); }

std::vector<__half> normal(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw;
  std::vector<__half> values(count);
  for (__half &value : values)
    value = __float2half(draw(random));
  return values;
}

/// The largest difference of the rows of O that are compared from softmax(Q K^T / sqrt(d) + mask) V.
double largestError(const Shape &s, const std::vector<__half> &q, const std::vector<__half> &k,
                    const std::vector<__half> &v, const std::vector<__half> &o) {
  double largest = 0;
  const int64_t d = s.head_dim, every = s.seq_q > 64 ? 37 : 1;
  for (int64_t head = 0; head < s.batch * s.heads; ++head)
    for (int64_t row = 0; row < s.seq_q; row += every) {
      const int64_t kv = head / s.heads * s.kv_heads + head % s.heads / (s.heads / s.kv_heads);
      const int64_t visible = s.causal ? std::min(s.seq_kv, row + s.seq_kv - s.seq_q + 1) : s.seq_kv;
      std::vector<double> sum(d);
      double total = 0;
      for (int64_t key = 0; key < visible; ++key) {
        double score = 0;
        for (int64_t i = 0; i < d; ++i)
          score +=
              double(__half2float(q[(head * s.seq_q + row) * d + i])) * __half2float(k[(kv * s.seq_kv + key) * d + i]);
        const double weight = std::exp(score / std::sqrt(double(d)));
        total += weight;
        for (int64_t i = 0; i < d; ++i)
          sum[i] += weight * __half2float(v[(kv * s.seq_kv + key) * d + i]);
      }
      for (int64_t i = 0; i < d; ++i) {
        const double wanted = visible > 0 ? sum[i] / total : 0;
        const double error = std::abs(wanted - __half2float(o[(head * s.seq_q + row) * d + i]));
        largest = error <= largest ? largest : error; // NaN stays
      }
    }
  return largest;
}

const __half *onGpu(const std::vector<__half> &values) {
  void *memory;
  require(cudaMalloc(&memory, values.size() * sizeof(__half)));
  require(cudaMemcpy(memory, values.data(), values.size() * sizeof(__half), cudaMemcpyHostToDevice));
  return static_cast<const __half *>(memory);
}

bool passes(const Shape &s, const attn_gpu &gpu) {
  attn_problem problem = {};
  problem.dtype = ATTN_F16, problem.causal = s.causal;
  problem.batch = s.batch, problem.heads = s.heads, problem.kv_heads = s.kv_heads;
  problem.seq_q = s.seq_q, problem.seq_kv = s.seq_kv, problem.head_dim_qk = s.head_dim;
  attn_choice choice;
  require(attn_select(&problem, &gpu, &choice));
  const std::vector<__half> q = normal(s.batch * s.heads * s.seq_q * s.head_dim, 1);
  const std::vector<__half> k = normal(s.batch * s.kv_heads * s.seq_kv * s.head_dim, 2);
  const std::vector<__half> v = normal(s.batch * s.kv_heads * s.seq_kv * s.head_dim, 3);
  std::vector<__half> o(q.size()), again(q.size());
  const __half *results = onGpu(o);
  const attn_tensors tensors = {onGpu(q), onGpu(k), onGpu(v), const_cast<__half *>(results), nullptr};
  void *workspace = nullptr;
  require(cudaMalloc(&workspace, choice.workspace_bytes + 1));
  require(cudaMemset(workspace, 0, choice.zero_bytes));
  for (std::vector<__half> *to : {&o, &again}) {
    require(attn_run(&choice, &tensors, workspace, nullptr));
    require(cudaMemcpy(to->data(), results, to->size() * sizeof(__half), cudaMemcpyDeviceToHost));
  }
  const double error = largestError(s, q, k, v, o);
  const bool repeats = std::memcmp(o.data(), again.data(), o.size() * sizeof(__half)) == 0, isRight = error <= 2e-3;
  std::printf("%s: %lld x %lld heads, %lld x %lld, mask %d: error %.2e%s%s\n", attn_kernels[choice.kernel].name,
              (long long)s.batch, (long long)s.heads, (long long)s.seq_q, (long long)s.seq_kv, s.causal, error,
              repeats ? "" : ", other bits the second time", isRight && repeats ? "" : " FAIL");
  return isRight && repeats;
}

} // namespace

int main(int count, char **words) {
  attn_gpu gpu;
  require(attn_gpu_of(0, &gpu));
  const int64_t d = count > 1 ? std::atoi(words[1]) : 64;
  const Shape shapes[] = {{1, 1, 1, 1, 1, d, 0},      {2, 4, 4, 300, 300, d, 0}, {2, 4, 2, 300, 300, d, 1},
                          {1, 8, 2, 77, 1000, d, 1},  {2, 8, 1, 4, 2000, d, 0},  {1, 2, 2, 130, 50, d, 1},
                          {1, 4, 4, 1024, 1024, d, 1}};
  int failed = 0;
  for (const Shape &shape : shapes)
    failed += !passes(shape, gpu);
  std::printf("%s: %d of %zu wrong\n", failed ? "FAIL" : "PASS", failed, sizeof(shapes) / sizeof(*shapes));
  return failed ? 2 : 0;
}
