// fagen: checks a linked table: a call into the runtime, whichever library has it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/table.h>
#include <l4_fp16/table.h>

int main() { return fagen_table_check(&fagen_table_l4_fp16); }
