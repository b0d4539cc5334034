// Instructions on bytes have no majors, and stand in a file of their own.
// RUN: fagen-tblgen -gen-wgmma-byte-wrappers -I %source/include %s | FileCheck %s
// RUN: fagen-tblgen -gen-wgmma-wrappers -I %source/include %s | FileCheck %s --check-prefix=HALVES
include "fagen/td/MmaInstrs.td"

// CHECK: m64n8k32, A in shared memory.
// CHECK-NEXT: void wgmma_f32_e4m3(float (&d)[4], MatrixDescriptor a, MatrixDescriptor b, bool accumulate,
// CHECK: "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 "
// CHECK-NEXT: "{%0, %1, %2, %3}, "
// CHECK-NEXT: "%4, %5, p, 1, 1;\n\t}"
// CHECK: m64n8k32, A in registers.
// CHECK: "{%4, %5, %6, %7}, %8, p, 1, 1;\n\t}"
// CHECK: m64n256k32, A in registers.
// HALVES-NOT: e4m3
