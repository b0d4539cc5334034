// fagen: attention without fusion, and a plain product, by cuBLAS.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "baseline.h"

namespace fagen::lab {

/// "cublas-unfused": scores by one product, softmax of their rows in place by our kernels/softmax.cu, O by a second
/// product; scores and probabilities in the element type in memory, products accumulated in f32.
std::unique_ptr<Baseline> makeCublasUnfused();

/// "cublas-gemm": the square product whose FLOPs are nearest to the problem's; its time is scaled to exactly those.
std::unique_ptr<Baseline> makeCublasGemm();

/// C = A B^T of normal values, row-major: A is m x k, B is n x k. CannotRun where there is no cuBLAS.
std::unique_ptr<GpuWork> makeCublasProduct(GpuDevice &device, DType dtype, int64_t m, int64_t n, int64_t k);

/// The side of that square: a multiple of 128.
int64_t gemmSide(const Shape &shape, Mask mask);

} // namespace fagen::lab
