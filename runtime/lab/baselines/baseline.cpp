// fagen: the baselines of this process by name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "baseline.h"
#include "cublas.h"

namespace fagen::lab {

std::unique_ptr<Baseline> makeBaseline(const std::string &name) {
  if (name == "cublas-unfused")
    return makeCublasUnfused();
  if (name == "cublas-gemm")
    return makeCublasGemm();
  return nullptr;
}

} // namespace fagen::lab
