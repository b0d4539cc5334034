// A new op gets its kind, its operands with effects and spaces, its attributes, and a row of the table.
// RUN: fagen-tblgen -gen-ops -I %source/include %s | FileCheck %s
include "fagen/td/Ops.td"

def LetterEnum : Enum<"Letter", "A letter.", ["a", "b"]>;
def Gather : Op<"gather", "rows that a table names",
    [Operand<"dst", Write, [Shared, Fragment]>, OptionalOperand<"pages", Read, [Global]>,
     RowsOfWarps<"rows", Read, [Global]>, RowsBehindWarpBarrier<"sums", ReadWrite, [Global]>],
    [Choice<"kind", LetterEnum>, Int<"depth", 1, 4, 1>, MaskEx<"when">, Ex<"row">]> {
  let HasSite = 1;
}

// CHECK: Gather, ///< gather
// CHECK: inline constexpr OperandInfo kGatherOperands[] = {
// CHECK-NEXT: {"dst", Effect::Write, kShared | kFragment, false, false, false},
// CHECK-NEXT: {"pages", Effect::Read, kGlobal, true, false, false},
// CHECK-NEXT: {"rows", Effect::Read, kGlobal, false, true, false},
// CHECK-NEXT: {"sums", Effect::ReadWrite, kGlobal, false, true, true},
// CHECK: inline constexpr llvm::StringLiteral kGatherValues_kind[] = {"a", "b"};
// CHECK-NEXT: inline constexpr AttributeInfo kGatherAttributes[] = {
// CHECK-NEXT: {Attr::Kind, "kind", AttributeType::String, false, 0, 0, kGatherValues_kind, false, false},
// CHECK-NEXT: {Attr::Depth, "depth", AttributeType::Integer, true, 1, 4, {}, false, false},
// CHECK-NEXT: {Attr::When, "when", AttributeType::Expression, false, 0, 0, {}, true, false},
// CHECK: {OpKind::Gather, "gather", kGatherOperands, kGatherAttributes, false, true,
// CHECK-NEXT: "rows that a table names"},
