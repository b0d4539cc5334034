// fagen: which number an extent tells, and what of it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "solve.h"

namespace fagen {
namespace {

/// The extents that a table has are small; what nests deeper tells nothing.
constexpr unsigned kMostSteps = 32;

class Solver {
public:
  Solver(const fagen_expression &extent, std::span<const int64_t> values, std::span<const bool> isKnown)
      : ops(extent.ops), size(extent.size), values(values), isKnown(isKnown) {}

  std::optional<Told> solve(int64_t value) const {
    if (countUnknown(0, size) != 1)
      return std::nullopt;
    uint32_t first = 0, end = size;
    for (unsigned step = 0; step < kMostSteps && end - first > 1; ++step) {
      const uint32_t right = beginOf(end - 1); // of the right operand, which ends before the operation
      const bool isRight = countUnknown(right, end - 1) != 0;
      const fagen_op &op = ops[end - 1];
      const uint32_t known = isRight ? first : right, knownEnd = isRight ? right : end - 1;
      const std::optional<int64_t> other = evaluateWith(ops + known, knownEnd - known, values);
      if (!other || !takeBack(op.kind, *other, isRight, value))
        return std::nullopt;
      (isRight ? first : end) = right;
      end -= isRight;
    }
    if (end - first != 1)
      return std::nullopt;
    return Told{uint32_t(ops[first].value - FAGEN_VAR_NUMBER_0), value};
  }

private:
  static bool isUnary(uint32_t kind) { return kind == FAGEN_OP_NEG || kind == FAGEN_OP_NOT; }
  static bool isLeaf(uint32_t kind) { return kind == FAGEN_OP_CONSTANT || kind == FAGEN_OP_VARIABLE; }

  /// Where the expression begins that ends before `end`.
  uint32_t beginOf(uint32_t end) const {
    unsigned needed = 1;
    while (needed != 0 && end != 0) {
      const uint32_t kind = ops[--end].kind;
      needed += isLeaf(kind) ? -1 : isUnary(kind) ? 0 : 1;
    }
    return end;
  }

  unsigned countUnknown(uint32_t begin, uint32_t end) const {
    unsigned count = 0;
    for (uint32_t i = begin; i < end; ++i)
      if (ops[i].kind == FAGEN_OP_VARIABLE && ops[i].value >= FAGEN_VAR_NUMBER_0)
        count += !isKnown[size_t(ops[i].value - FAGEN_VAR_NUMBER_0)];
    return count;
  }

  /// From the value of an operation to that of its other operand; whether there is one. Extents are at most 10^9, so
  /// that nothing here exceeds 64 bits but a product, which is divided.
  static bool takeBack(uint32_t kind, int64_t other, bool isRight, int64_t &value) {
    switch (kind) {
    case FAGEN_OP_ADD:
      return !__builtin_sub_overflow(value, other, &value);
    case FAGEN_OP_SUB:
      return isRight ? !__builtin_sub_overflow(other, value, &value) : !__builtin_add_overflow(value, other, &value);
    case FAGEN_OP_MUL:
      if (other == 0 || other == -1 || value % other != 0)
        return false;
      value /= other;
      return true;
    }
    return false;
  }

  const fagen_op *const ops;
  const uint32_t size;
  const std::span<const int64_t> values;
  const std::span<const bool> isKnown;
};

} // namespace

std::optional<Told> solveExtent(const fagen_expression &extent, int64_t value, std::span<const int64_t> values,
                                std::span<const bool> isKnown) {
  return Solver(extent, values, isKnown).solve(value);
}

} // namespace fagen
