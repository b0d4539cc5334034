// fagen: the baselines of this process by name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "baseline.h"
#include "cublas.h"
#include "stream.h"

namespace fagen::lab {

std::unique_ptr<Baseline> makeBaseline(const std::string &name) {
  if (name == "cublas-unfused")
    return makeCublasUnfused();
  if (name == "cublas-gemm")
    return makeCublasGemm();
  if (name == "stream")
    return makeStream();
  return nullptr;
}

} // namespace fagen::lab
