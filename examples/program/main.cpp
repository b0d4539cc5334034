// fagen: an application that calls a program of its own by the names of its tensors, and a plain loop to compare with.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../attention/cuda.h"
#include "../attention/half.h"

#include <cmath>
#include <cstdio>
#include <fagen/fagen.hpp>

constexpr int kRows = 300, kColumns = 200, kLength = 136;

double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

/// program KERNELS: a directory that `fagen gemm_gelu.fair -o DIR` wrote.
int main(int count, char **words) try {
  const fagen::Table table(count > 1 ? words[1] : "kernels/gemm_gelu");
  fagen::Device device(0);
  device.makeCurrent();
  const auto a = randomHalves(kRows * kLength, 1), b = randomHalves(kColumns * kLength, 2);
  cuda::Buffer da(a), db(b);
  fagen::Call call("gemm_gelu");
  call.tensor("a", da.data(), FAGEN_DTYPE_F16, {kRows, kLength})
      .tensor("b", db.data(), FAGEN_DTYPE_F16, {kColumns, kLength})
      .result("c");
  const fagen::Choice choice = device.query({table.get()}, call);
  choice.prepare();

  const fagen_named_tensor &shape = call["c"]; // which the query has filled in
  cuda::Buffer dc(size_t(shape.extent[0] * shape.extent[1]));
  call["c"].data = dc.data();
  choice.run(call);
  const std::vector<Half> c = dc.read();

  double error = 0;
  for (int m = 0; m < kRows; ++m)
    for (int n = 0; n < kColumns; ++n) {
      double sum = 0;
      for (int k = 0; k < kLength; ++k)
        sum += double(toFloat(a[size_t(m) * kLength + k])) * toFloat(b[size_t(n) * kLength + k]);
      error = std::max(error, std::abs(toFloat(c[size_t(m) * kColumns + n]) - gelu(sum)));
    }
  std::printf("%s on %s: c is %lld x %lld, max error %.2e\n", choice.info().variant, device.info().name,
              (long long)shape.extent[0], (long long)shape.extent[1], error);
  return error < 5e-2 ? 0 : 1;
} catch (const fagen::Error &error) {
  std::printf("not run: %s\n", error.what());
  return error.status() == FAGEN_CUDA ? 77 : 1; // 77: no GPU here
}
