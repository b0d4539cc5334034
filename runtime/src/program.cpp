// fagen: the interpreter of a table's postfix programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values are 64-bit and wrap: sums and products are formed in unsigned arithmetic, and the one quotient that does not
// fit (the smallest value by -1) wraps to the smallest value.
#include "program.h"

#include <algorithm>
#include <limits>

namespace fagen {
namespace {

int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }
uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }

int64_t divide(int64_t a, int64_t b) { return b == -1 ? wrap(0 - bits(a)) : a / b; }
int64_t remainder(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }

/// The least integer not below a / b.
int64_t ceilDivide(int64_t a, int64_t b) {
  int64_t quotient = divide(a, b);
  bool inexact = remainder(a, b) != 0;
  return quotient + (inexact && (a < 0) == (b < 0));
}

/// The largest integer not above a / b.
int64_t floorDivide(int64_t a, int64_t b) { return divide(a, b) - (remainder(a, b) != 0 && (a < 0) != (b < 0)); }

std::optional<int64_t> binary(uint32_t kind, int64_t a, int64_t b) {
  switch (kind) {
  case FAGEN_OP_ADD:
    return wrap(bits(a) + bits(b));
  case FAGEN_OP_SUB:
    return wrap(bits(a) - bits(b));
  case FAGEN_OP_MUL:
    return wrap(bits(a) * bits(b));
  case FAGEN_OP_DIV:
    return b == 0 ? std::nullopt : std::optional(divide(a, b));
  case FAGEN_OP_MOD:
    return b == 0 ? std::nullopt : std::optional(remainder(a, b));
  case FAGEN_OP_CEIL_DIV:
    return b == 0 ? std::nullopt : std::optional(ceilDivide(a, b));
  case FAGEN_OP_EQ:
    return a == b;
  case FAGEN_OP_NE:
    return a != b;
  case FAGEN_OP_LT:
    return a < b;
  case FAGEN_OP_LE:
    return a <= b;
  case FAGEN_OP_GT:
    return a > b;
  case FAGEN_OP_GE:
    return a >= b;
  case FAGEN_OP_AND:
    return a != 0 && b != 0;
  case FAGEN_OP_OR:
    return a != 0 || b != 0;
  case FAGEN_OP_MIN:
    return std::min(a, b);
  case FAGEN_OP_MAX:
    return std::max(a, b);
  case FAGEN_OP_FLOOR_DIV:
    return b == 0 ? std::nullopt : std::optional(floorDivide(a, b));
  default:
    return std::nullopt;
  }
}

bool isLeaf(uint32_t kind) { return kind == FAGEN_OP_CONSTANT || kind == FAGEN_OP_VARIABLE; }
bool isUnary(uint32_t kind) { return kind == FAGEN_OP_NEG || kind == FAGEN_OP_NOT; }

} // namespace

std::optional<int64_t> evaluateWith(const fagen_op *program, uint32_t size, std::span<const int64_t> values) {
  int64_t stack[FAGEN_PROGRAM_DEPTH];
  unsigned depth = 0;
  for (uint32_t i = 0; i < size; ++i) {
    const fagen_op &op = program[i];
    if (isLeaf(op.kind)) {
      bool constant = op.kind == FAGEN_OP_CONSTANT;
      if (depth == FAGEN_PROGRAM_DEPTH || (!constant && bits(op.value) >= values.size()))
        return std::nullopt;
      stack[depth++] = constant ? op.value : values[size_t(op.value)];
      continue;
    }
    if (depth < (isUnary(op.kind) ? 1u : 2u))
      return std::nullopt;
    if (isUnary(op.kind)) {
      int64_t &top = stack[depth - 1];
      top = op.kind == FAGEN_OP_NEG ? wrap(0 - bits(top)) : top == 0;
      continue;
    }
    std::optional<int64_t> value = binary(op.kind, stack[depth - 2], stack[depth - 1]);
    if (!value)
      return std::nullopt;
    stack[--depth - 1] = *value;
  }
  return depth == 1 ? std::optional(stack[0]) : std::nullopt;
}

const char *checkProgram(const fagen_op *program, uint32_t size, uint64_t variables) {
  unsigned depth = 0;
  for (uint32_t i = 0; i < size; ++i) {
    const fagen_op &op = program[i];
    if (op.kind > FAGEN_OP_FLOOR_DIV)
      return "has an unknown operation";
    if (op.kind == FAGEN_OP_VARIABLE && bits(op.value) >= variables)
      return "has an unknown variable";
    if (isLeaf(op.kind)) {
      if (++depth > FAGEN_PROGRAM_DEPTH)
        return "holds too many values at once";
      continue;
    }
    unsigned operands = isUnary(op.kind) ? 1 : 2;
    if (depth < operands)
      return "lacks an operand";
    depth -= operands - 1;
  }
  return depth == 1 ? nullptr : "does not end with one value";
}

} // namespace fagen
