// Each N of a wgmma instruction has a wrapper for A in shared memory and one for A in registers.
// RUN: fagen-tblgen -gen-wgmma-wrappers -I %source/include %s | FileCheck %s
include "fagen/td/MmaInstrs.td"

let NMax = 16, DRegisters = 4 in def Short : WgmmaM64K16<F16, F32>;

// CHECK: m64n256k16, A in registers.
// CHECK: void wgmma_f32_bf16(float (&d)[128], const unsigned (&a)[4], MatrixDescriptor b,
// CHECK: m64n16k16, A in shared memory.
// CHECK-NEXT: template <Major kA, Major kB>
// CHECK-NEXT: void wgmma_f32_f16(float (&d)[8], MatrixDescriptor a, MatrixDescriptor b, bool accumulate,
// CHECK: "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
// CHECK-NEXT: "{%0, %1, %2, %3, %4, %5, %6, %7}, "
// CHECK-NEXT: "%8, %9, p, 1, 1, %11, %12;\n\t}"
// CHECK: m64n16k16, A in registers.
// CHECK: "{%8, %9, %10, %11}, %12, p, 1, 1, %14;\n\t}"
// CHECK-NOT: m64n24k16
