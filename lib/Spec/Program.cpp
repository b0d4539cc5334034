// fagen: postfix programs over 64-bit integers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Spec/Program.h"

#include <algorithm>

using namespace llvm;

namespace fagen {

static bool isLeaf(SelectOp::Kind kind) { return kind == SelectOp::Constant || kind == SelectOp::Variable; }
static bool isUnary(SelectOp::Kind kind) { return kind == SelectOp::Neg || kind == SelectOp::Not; }

unsigned programDepth(ArrayRef<SelectOp> program) {
  unsigned depth = 0, deepest = 0;
  for (const SelectOp &op : program) {
    if (isLeaf(op.kind))
      deepest = std::max(deepest, ++depth);
    else if (!isUnary(op.kind))
      --depth;
  }
  return deepest;
}

static int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }

// -1 apart: the smallest value has no positive twin.
static int64_t divide(int64_t a, int64_t b) { return b == -1 ? wrap(0 - uint64_t(a)) : a / b; }
static int64_t remainder(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }

std::optional<int64_t> applyUnary(SelectOp::Kind kind, int64_t operand) {
  return kind == SelectOp::Neg ? wrap(0 - uint64_t(operand)) : int64_t(operand == 0);
}

std::optional<int64_t> applyBinary(SelectOp::Kind kind, int64_t a, int64_t b) {
  bool divides =
      kind == SelectOp::Div || kind == SelectOp::Mod || kind == SelectOp::CeilDiv || kind == SelectOp::FloorDiv;
  if (divides && b == 0)
    return std::nullopt;
  switch (kind) {
  case SelectOp::Add:
    return wrap(uint64_t(a) + uint64_t(b));
  case SelectOp::Sub:
    return wrap(uint64_t(a) - uint64_t(b));
  case SelectOp::Mul:
    return wrap(uint64_t(a) * uint64_t(b));
  case SelectOp::Div:
    return divide(a, b);
  case SelectOp::Mod:
    return remainder(a, b);
  case SelectOp::CeilDiv:
    return divide(a, b) + (remainder(a, b) != 0 && (a < 0) == (b < 0));
  case SelectOp::Eq:
    return a == b;
  case SelectOp::Ne:
    return a != b;
  case SelectOp::Lt:
    return a < b;
  case SelectOp::Le:
    return a <= b;
  case SelectOp::Gt:
    return a > b;
  case SelectOp::Ge:
    return a >= b;
  case SelectOp::And:
    return a != 0 && b != 0;
  case SelectOp::Or:
    return a != 0 || b != 0;
  case SelectOp::Min:
    return std::min(a, b);
  case SelectOp::Max:
    return std::max(a, b);
  case SelectOp::FloorDiv:
    return divide(a, b) - (remainder(a, b) != 0 && (a < 0) != (b < 0));
  default:
    return std::nullopt; // no binary operation
  }
}

std::optional<int64_t> evaluate(ArrayRef<SelectOp> program, function_ref<int64_t(int64_t)> variable) {
  std::vector<int64_t> stack;
  for (const SelectOp &op : program) {
    if (isLeaf(op.kind)) {
      stack.push_back(op.kind == SelectOp::Constant ? op.value : variable(op.value));
      continue;
    }
    int64_t right = stack.back();
    std::optional<int64_t> result;
    if (isUnary(op.kind)) {
      result = applyUnary(op.kind, right);
    } else {
      stack.pop_back();
      result = applyBinary(op.kind, stack.back(), right);
    }
    if (!result)
      return std::nullopt;
    stack.back() = *result;
  }
  return stack.back();
}

} // namespace fagen
