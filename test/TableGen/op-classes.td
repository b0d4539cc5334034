// A new op gets a class with its accessors, and a function that makes it; an enumeration its C++ type.
// RUN: fagen-tblgen -gen-op-classes -I %source/include %s | FileCheck %s
// RUN: fagen-tblgen -gen-op-enums -I %source/include %s | FileCheck %s --check-prefix=ENUM
// RUN: not fagen-tblgen -gen-op-enums -I %source/include -DCOUNT %s 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not fagen-tblgen -gen-op-enums -I %source/include -DTWICE %s 2>&1 | FileCheck %s --check-prefix=TWICE
include "fagen/td/Ops.td"

def ThreadKindEnum : Enum<"ThreadKind", "A kind of thread.", ["few_some", "0"], ["FewSome", "Zero"]>;
def Gather : Op<"gather", "rows that a table names",
    [Operand<"first_row", Write, [Shared, Fragment]>, OptionalOperand<"pages", Read, [Global]>],
    [Choice<"kind", ThreadKindEnum>, IntOr<"depth", 1, 4, 2>, Int<"id", 0, 4, 1>, Flag<"late">, Ex<"when", 1>,
     Choice<"by", ActorEnum, 1>]>;

// ENUM:      /// A kind of thread.
// ENUM-NEXT: enum class ThreadKind : uint8_t { FewSome, Zero };
// ENUM:        case ThreadKind::FewSome:
// ENUM-NEXT:     return "few_some";
// ENUM:      inline constexpr std::array kThreadKinds = {ThreadKind::FewSome, ThreadKind::Zero};
// ENUM:      template <> inline ThreadKind parse<ThreadKind>(

// CHECK:      template <typename T = Op> class GatherOp : public OpView<T, OpKind::Gather> {
// CHECK:        auto &firstRow() const { return this->operand(kFirstRow); }
// CHECK:        static constexpr unsigned kPages = 1;
// CHECK:        ThreadKind kind() const { return this->template choice<ThreadKind>(Attr::Kind); }
// CHECK-NEXT:   void setKind(ThreadKind value) const { this->set(Attr::Kind, toString(value).str()); }
// CHECK-NEXT:   int64_t depth() const { return this->has(Attr::Depth) ? this->integer(Attr::Depth) : 2; }
// CHECK:        std::optional<int64_t> id() const {
// CHECK:        bool late() const { return this->flag(Attr::Late); }
// CHECK:        Expr when() const { return this->expression(Attr::When); }
// CHECK:        std::optional<Actor> by() const {
// CHECK:      struct GatherArgs {
// CHECK-NEXT:   Operand firstRow;
// CHECK-NEXT:   Operand pages = {};
// CHECK-NEXT:   ThreadKind kind;
// CHECK-NEXT:   std::optional<int64_t> depth = {};
// CHECK:      inline std::unique_ptr<Op> makeGather(GatherArgs args) {

#ifdef COUNT
// COUNT: [[#@LINE+1]]:5: error: enumeration 'Count' names 1 enumerators for its values
def CountEnum : Enum<"Count", "", ["a", "b"], ["A"]>;
#endif
#ifdef TWICE
// TWICE: [[#@LINE+1]]:5: error: enumeration 'Twice' has the enumerator 'A' twice
def TwiceEnum : Enum<"Twice", "", ["a", "b"], ["A", "A"]>;
#endif
