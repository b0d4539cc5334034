// fagen: what the generated classes of ops (fagen/IR/OpClasses.h) have in common, and the tests for them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   if (const auto copy = dynCast<CopyIssueOp>(op))           // op: Op or const Op
//     use(copy->dst().buffer, copy->row(), copy->kind() == CopyKind::Bulk);
//   copy->setRow(row);                                        // where op is no const Op
//   ops.push_back(makeWait({.bar = {full, turn}, .by = Actor::Role, .note = "..."}));
#pragma once

#include "fagen/IR/IR.h"

#include <cassert>
#include <optional>
#include <type_traits>

namespace fagen::ir {

/// A view of an op of one kind; as cheap to copy as a pointer. T is Op or const Op.
template <typename T, OpKind Kind> class OpView {
public:
  static constexpr OpKind kKind = Kind;
  T &operator*() const { return *op; }
  T *operator->() const { return op; }

protected:
  using OperandOf = std::conditional_t<std::is_const_v<T>, const Operand, Operand>;

  explicit OpView(T &op) : op(&op) { assert(op.kind == Kind && "an op of another kind"); }
  OperandOf &operand(unsigned index) const { return op->operands[index]; }
  bool has(Attr attr) const { return op->has(attr); }
  bool flag(Attr attr) const { return op->isSet(attr); }
  int64_t integer(Attr attr) const { return op->integer(attr); }
  llvm::StringRef text(Attr attr) const { return op->has(attr) ? op->text(attr) : ""; }
  Expr expression(Attr attr) const { return op->has(attr) ? op->expr(attr) : Expr(); }
  template <typename EnumType> EnumType choice(Attr attr) const { return parse<EnumType>(op->text(attr)); }
  void set(Attr attr, Attribute value) const { op->set(attr, std::move(value)); }

private:
  T *op;
};

/// The op as a View, if it is of that kind.
template <template <typename> class View, typename T> std::optional<View<T>> dynCast(T &op) {
  return op.kind == View<T>::kKind ? std::optional(View<T>(op)) : std::nullopt;
}

/// Calls `visit` with each op of the kind, those in bodies included.
template <template <typename> class View, typename BlockType, typename Visitor>
void forEach(BlockType &block, Visitor visit) {
  walk(block, [&](std::conditional_t<std::is_const_v<BlockType>, const Op, Op> &op) {
    if (auto view = dynCast<View>(op))
      visit(*view);
  });
}

} // namespace fagen::ir
