// fagen: the C interface by which measure/compare_sdpa.py times an attention that fagen did not make.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library that exports fagen_contestant_launch takes part: --contestant NAME=LIBRARY.so. It is called on the tensors
// that all contestants of a problem share, captured into the same CUDA graphs and timed in the same rounds; before that
// its O must agree with PyTorch's. FlashAttention-3's kernels, called by a few lines of C++, are such a library.
#ifndef FAGEN_MEASURE_CONTESTANT_H
#define FAGEN_MEASURE_CONTESTANT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FAGEN_CONTESTANT_F16 = 1, FAGEN_CONTESTANT_BF16 = 2 };

/// Bytes of `scratch`.
enum { FAGEN_CONTESTANT_SCRATCH = 1 << 20 };

typedef struct fagen_contestant_problem {
  uint32_t struct_size; ///< of the caller's struct
  uint32_t dtype;       ///< FAGEN_CONTESTANT_*
  uint32_t causal;      ///< 1: key j is visible to query i if j <= i + seq_kv - seq_q
  float scale;          ///< of the scores
  int64_t batch, heads, kv_heads, seq_q, seq_kv, head_dim_qk, head_dim_v;
  int64_t q_stride[3], k_stride[3], v_stride[3], o_stride[3]; ///< batch, head, row; in elements; columns are dense
  const void *q, *k, *v;
  void *o;
  float *lse;    ///< [batch, heads, seq_q], dense: log of the sum of exponentials, which all contestants write
  void *scratch; ///< device memory of the contestant's own for this problem; zero before its first launch
  void *stream;  ///< CUstream; it may be capturing a graph
} fagen_contestant_problem;

/// Enqueues one forward pass, with all that a user of the library would pay for it. Null, or in a few words why it does
/// not take this problem: then nothing was enqueued. The text must live on.
const char *fagen_contestant_launch(const fagen_contestant_problem *problem);

/// Optional: one line that goes into the results: which version this is, what a launch consists of.
const char *fagen_contestant_about(void);

#ifdef __cplusplus
}
#endif

#endif // FAGEN_MEASURE_CONTESTANT_H
