// fagen: links two kernel sets from their own directories.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/table.h>
#include <l4_fp16/table.h>
#include <l4_fp16_scalar/table.h>

int main() { return fagen_table_check(&fagen_table_l4_fp16) || fagen_table_check(&fagen_table_l4_fp16_scalar); }
