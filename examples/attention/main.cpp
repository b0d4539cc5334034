// fagen: an application: its own buffers, one query, one launch, and a plain loop to compare with.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cuda.h"
#include "half.h"

#include <algorithm>
#include <cstdio>
#include <fagen/fagen.hpp>
#include <l4_fp16/table.h>

constexpr int kBatch = 2, kHeads = 8, kKvHeads = 2, kSeq = 300, kDim = 64;

/// One row of O by definition: causal softmax(Q K^T / sqrt(d)) V.
void attend(const Half *q, const Half *k, const Half *v, int row, double (&o)[kDim]) {
  double sum = 0;
  std::fill(o, o + kDim, 0.0);
  for (int key = 0; key <= row; ++key) {
    double score = 0;
    for (int d = 0; d < kDim; ++d)
      score += double(toFloat(q[d])) * toFloat(k[key * kDim + d]);
    double weight = std::exp(score / std::sqrt(kDim));
    sum += weight;
    for (int d = 0; d < kDim; ++d)
      o[d] += weight * toFloat(v[key * kDim + d]);
  }
  for (double &value : o)
    value /= sum;
}

int main() try {
  fagen::Device device(0);
  device.makeCurrent();
  fagen_problem problem = fagen_problem_init();
  problem.dtype = FAGEN_DTYPE_F16;
  problem.mask = FAGEN_MASK_CAUSAL;
  problem.batch = kBatch;
  problem.heads = kHeads;
  problem.kv_heads = kKvHeads;
  problem.seq_q = problem.seq_kv = kSeq;
  problem.head_dim_qk = kDim; // strides are absent: packed
  fagen::Choice choice = device.query({&fagen_table_l4_fp16}, problem);
  choice.prepare();

  const auto q = randomHalves(kBatch * kHeads * kSeq * kDim, 1), k = randomHalves(kBatch * kKvHeads * kSeq * kDim, 2),
             v = randomHalves(kBatch * kKvHeads * kSeq * kDim, 3);
  cuda::Buffer dq(q), dk(k), dv(v), dO(q.size());
  fagen_tensors tensors = fagen_tensors_init();
  tensors.q = dq.data();
  tensors.k = dk.data();
  tensors.v = dv.data();
  tensors.o = dO.data();
  choice.run(tensors);
  const std::vector<Half> o = dO.read();

  double error = 0, expected[kDim];
  for (int row = 0; row < kBatch * kHeads * kSeq; ++row) {
    const size_t kv = size_t(row / kSeq / (kHeads / kKvHeads)) * kSeq * kDim;
    attend(&q[size_t(row) * kDim], &k[kv], &v[kv], row % kSeq, expected);
    for (int d = 0; d < kDim; ++d)
      error = std::max(error, std::abs(toFloat(o[size_t(row) * kDim + d]) - expected[d]));
  }
  std::printf("%s on %s: max error %.2e\n", choice.info().variant, device.info().name, error);
  return error < 2e-3 ? 0 : 1;
} catch (const fagen::Error &error) {
  std::printf("not run: %s\n", error.what());
  return error.status() == FAGEN_CUDA ? 77 : 1; // 77: no GPU here
}
