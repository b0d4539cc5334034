// fagen: what a soak needs on a GPU: comparison of results in place, and work that keeps the chip busy meanwhile.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// Adds to *count how many of the words differ.
extern "C" __global__ void countDifferences(const unsigned *a, const unsigned *b, unsigned long long words,
                                            unsigned long long *count) {
  unsigned long long mine = 0;
  const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < words;
       i += stride)
    mine += a[i] != b[i];
  if (mine)
    atomicAdd(count, mine);
}

/// Walks through memory in an order of its own for as many steps as the CTA's number and `seed` say: takes SMs, L2 and
/// bandwidth away at moments that nobody else knows. `words` is a power of two.
extern "C" __global__ void keepBusy(unsigned *memory, unsigned words, unsigned seed, unsigned mostSteps) {
  unsigned state = (seed + blockIdx.x) * 2654435761u + 1;
  const unsigned steps = (state >> 16) % mostSteps;
  unsigned sum = threadIdx.x;
  for (unsigned step = 0; step < steps; ++step) {
    state = state * 1664525u + 1013904223u;
    const unsigned at = ((state >> 4) + threadIdx.x) & (words - 1);
    sum += memory[at];
    memory[at] = sum;
  }
}
