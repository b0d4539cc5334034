// fagen: softmax of rows of 16-bit scores in place: the middle of unfused attention. A CTA a row.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/ptx/math.h>

using namespace fagen::device;

static constexpr float kLowest = -3.4e38f; // finite: a difference of two is a number
static constexpr int kPerLoad = 8;

struct alignas(16) Words {
  unsigned short value[kPerLoad];
};

/// A maximum, and the sum of exp(x - maximum).
struct Partial {
  float max, sum;
};

static __device__ __forceinline__ Partial merge(Partial a, Partial b) {
  const float max = fmaxf(a.max, b.max);
  return {max, a.sum * __expf(a.max - max) + b.sum * __expf(b.max - max)};
}

static __device__ __forceinline__ Partial mergeCta(Partial mine) {
  __shared__ Partial warps[32];
  for (int lane = 16; lane; lane /= 2)
    mine = merge(mine, {__shfl_xor_sync(~0u, mine.max, lane), __shfl_xor_sync(~0u, mine.sum, lane)});
  if (threadIdx.x % 32 == 0)
    warps[threadIdx.x / 32] = mine;
  __syncthreads();
  Partial all = warps[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp)
    all = merge(all, warps[warp]);
  return all;
}

/// scores: [rows][keys], scaled; keys a multiple of 8. Row r is of query r % queries, and sees, when causal, the keys
/// up to r % queries + keys - queries. A row that sees none becomes 0.
template <class T>
static __device__ __forceinline__ void softmaxRow(unsigned short *scores, long long keys, long long queries,
                                                  int causal) {
  long long visible = causal ? blockIdx.x % queries + keys - queries + 1 : keys;
  visible = visible < 0 ? 0 : visible > keys ? keys : visible;
  Words *row = reinterpret_cast<Words *>(scores + blockIdx.x * keys);
  Partial mine = {kLowest, 0.0f};
  for (long long i = threadIdx.x; i * kPerLoad < visible; i += blockDim.x) {
    const Words words = row[i];
    float x[kPerLoad], max = kLowest, sum = 0.0f;
    for (int j = 0; j < kPerLoad; ++j) {
      x[j] = i * kPerLoad + j < visible ? ptx::to_float(T{words.value[j]}) : kLowest;
      max = fmaxf(max, x[j]);
    }
    for (int j = 0; j < kPerLoad; ++j)
      sum += __expf(x[j] - max);
    mine = merge(mine, {max, sum});
  }
  const Partial all = mergeCta(mine);
  const float over = visible > 0 ? 1.0f / all.sum : 0.0f;
  for (long long i = threadIdx.x; i * kPerLoad < keys; i += blockDim.x) {
    Words words = row[i];
    for (int j = 0; j < kPerLoad; ++j) {
      const bool seen = i * kPerLoad + j < visible;
      const float p = seen ? __expf(ptx::to_float(T{words.value[j]}) - all.max) * over : 0.0f;
      words.value[j] = ptx::round_to<T>(p).bits;
    }
    row[i] = words;
  }
}

extern "C" __global__ void softmaxRowsF16(unsigned short *scores, long long keys, long long queries, int causal) {
  softmaxRow<f16>(scores, keys, queries, causal);
}
extern "C" __global__ void softmaxRowsBf16(unsigned short *scores, long long keys, long long queries, int causal) {
  softmaxRow<bf16>(scores, keys, queries, causal);
}
