// fagen: asks two kernel sets at once, on the description of a GPU, and prints what answers and how it would be loaded.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdio>
#include <fagen/fagen.hpp>
#include <fagen/table.h>
#include <l4_fp16/table.h>
#include <tiny/table.h>

int main() try {
  for (const fagen_table *table : {&fagen_table_l4_fp16, &fagen_table_tiny})
    fagen::check(fagen_table_check(table));
  for (unsigned sm : {89u, 90u}) {
    fagen::Device device = fagen::Device::describe(sm, 58);
    for (unsigned dtype : {FAGEN_DTYPE_F16, FAGEN_DTYPE_BF16}) {
      fagen_problem problem = fagen_problem_init();
      problem.dtype = dtype;
      problem.batch = 1;
      problem.heads = 8;
      problem.seq_q = problem.seq_kv = 512;
      problem.head_dim_qk = 64;
      fagen::Choice choice = device.query({&fagen_table_l4_fp16, &fagen_table_tiny}, problem);
      choice.prepare();
      std::printf("sm_%u: %s by %s\n", sm, choice.info().variant, choice.info().origin);
    }
  }
  return 0;
} catch (const fagen::Error &error) {
  std::printf("%s\n", error.what());
  return 1;
}
