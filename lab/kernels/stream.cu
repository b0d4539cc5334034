// fagen: reads two arrays, by loads of 16 bytes. What they hold goes nowhere, but the compiler cannot know.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

struct alignas(16) Vector {
  unsigned word[4];
};

static __device__ __forceinline__ unsigned fold(const Vector *from, long long count) {
  constexpr int kAtOnce = 8;
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  unsigned all = 0;
  for (; i + (kAtOnce - 1) * step < count; i += kAtOnce * step) {
    Vector vectors[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      vectors[j] = from[i + j * step];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      all ^= vectors[j].word[0] ^ vectors[j].word[1] ^ vectors[j].word[2] ^ vectors[j].word[3];
  }
  for (; i < count; i += step)
    all ^= from[i].word[0] ^ from[i].word[1] ^ from[i].word[2] ^ from[i].word[3];
  return all;
}

/// `to` is written by a thread whose words have one exclusive or of all: hardly ever.
extern "C" __global__ void streamBoth(const Vector *k, const Vector *v, long long ofK, long long ofV, unsigned *to) {
  const unsigned all = fold(k, ofK) ^ fold(v, ofV);
  if (all == 0xffffffffu)
    *to = all;
}
