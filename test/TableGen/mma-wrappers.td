// An instruction that becomes implemented gets its wrapper, with the operands that its record counts.
// RUN: fagen-tblgen -gen-mma-wrappers -I %source/include %s | FileCheck %s
include "fagen/td/MmaInstrs.td"

let Implemented = 1, DRegisters = 2 in def HalfAccumulate : MmaM16N8K16<F16, F16>;

// CHECK: void mma_m16n8k16_f32_f16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
// CHECK: void mma_m16n8k16_f16_f16(unsigned (&d)[2], const unsigned (&a)[4], unsigned b0, unsigned b1,
// CHECK: asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
// CHECK-NEXT: "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
// CHECK-NEXT: : "+r"(d[0]), "+r"(d[1])
// CHECK-NEXT: : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
