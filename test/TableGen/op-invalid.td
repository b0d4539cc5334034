// Ops are declared once, name each operand and attribute once, and admit some value and space for each.
// RUN: not fagen-tblgen -gen-ops -I %source/include -DTWICE %s 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not fagen-tblgen -gen-ops -I %source/include -DFIELD %s 2>&1 | FileCheck %s --check-prefix=FIELD
// RUN: not fagen-tblgen -gen-ops -I %source/include -DVALUE %s 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not fagen-tblgen -gen-ops -I %source/include -DSPACE %s 2>&1 | FileCheck %s --check-prefix=SPACE
// RUN: not fagen-tblgen -gen-ops -I %source/include -DROWS %s 2>&1 | FileCheck %s --check-prefix=ROWS
include "fagen/td/Ops.td"

#ifdef TWICE
// TWICE: [[#@LINE+1]]:5: error: op 'map' is declared twice
def Map2 : Op<"map", "again", []>;
#endif
#ifdef FIELD
// FIELD: [[#@LINE+1]]:5: error: op 'dawdle' has 'dst' twice
def Dawdle : Op<"dawdle", "an op", [Operand<"dst", Write, [Shared]>], [Ex<"dst">]>;
#endif
#ifdef VALUE
// VALUE: [[#@LINE+1]]:5: error: attribute 'count' admits no value
def Dawdle : Op<"dawdle", "an op", [], [Int<"count", 2, 1>]>;
#endif
#ifdef SPACE
// SPACE: [[#@LINE+1]]:5: error: operand 'dst' has no space
def Dawdle : Op<"dawdle", "an op", [Operand<"dst", Write, []>]>;
#endif
#ifdef ROWS
// ROWS: [[#@LINE+1]]:5: error: operand 'dst' has rows of warps, but the op has no attribute 'row'
def Dawdle : Op<"dawdle", "an op", [RowsOfWarps<"dst", Write, [Global]>]>;
#endif
