# fagen: prints IR with more loops in each other than the parser takes.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
print("program @p {\n  kernel @k target sm_89 backend mma_sync threads 32 phase built {\n    role all warps 0 to 1 {")
for depth in range(80):
    print(f"loop i{depth} = 0 to 1 {{")
