// fagen: the few functions of cuBLAS that baselines call, found at run time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Own declarations, so that no toolkit is needed to build; names and numbers are those of cublas_api.h since 11.
#pragma once

#include "lab/device/cuda.h"

namespace fagen::lab {

using CublasHandle = struct cublasContext *;
using CublasStatus = int;

enum CublasOperation { kCublasNone = 0, kCublasTransposed = 1 };
enum CudaDataType { kCudaF16 = 2, kCudaBf16 = 14 };
enum : int { kCublasComputeF32 = 68, kCublasDefaultAlgorithm = -1 };

struct Cublas {
  CublasStatus (*create)(CublasHandle *handle);
  CublasStatus (*destroy)(CublasHandle handle);
  CublasStatus (*setStream)(CublasHandle handle, CuStream stream);
  CublasStatus (*setWorkspace)(CublasHandle handle, void *workspace, size_t bytes);
  CublasStatus (*getVersion)(CublasHandle handle, int *version);
  const char *(*statusString)(CublasStatus status);
  CublasStatus (*gemmStridedBatched)(CublasHandle handle, int transA, int transB, int m, int n, int k,
                                     const void *alpha, const void *a, int aType, int lda, long long strideA,
                                     const void *b, int bType, int ldb, long long strideB, const void *beta, void *c,
                                     int cType, int ldc, long long strideC, int batches, int computeType,
                                     int algorithm);
};

/// The library, loaded by the first call; null, with the reason in `reason`, when it is not here.
const Cublas *cublas(std::string &reason);

} // namespace fagen::lab
