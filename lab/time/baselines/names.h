// fagen: what a time can be compared with.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   kernel:VARIANT       another of our kernels
//   sdpa                 the fastest of PyTorch's backends, of those that take the problem
//   sdpa:flash, sdpa:cudnn, sdpa:efficient, sdpa:math
//   cublas-unfused       two products by cuBLAS with a softmax between them, scores in memory
//   stream               a kernel that only reads K and V: the floor of memory
//   cublas-gemm          a square product by cuBLAS of as many FLOPs: the ceiling of products
#pragma once

#include <string>
#include <vector>

namespace fagen::lab {

/// UserError with the nearest name unless a baseline is called so. Variants are not looked up.
void requireBaseline(const std::string &name);

/// The variant of "kernel:VARIANT"; empty for other names.
std::string baselineVariant(const std::string &name);

/// The contestants of a name: the four of "sdpa", else the name alone.
std::vector<std::string> baselineMembers(const std::string &name);

/// Whether PyTorch computes it.
bool isSdpa(const std::string &name);

} // namespace fagen::lab
