// fagen: what maps and reductions compute, known by the shape of their expressions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes and the emitter ask for these instead of kinds of ops. Factories make what the questions recognise.
#pragma once

#include "fagen/IR/OpClasses.h"

namespace fagen::ir {

/// The element of the buffer that an expression of a map names.
Expr elementOf(const Buffer &buffer);
/// x, and 0 where that is -inf: of a row that has seen nothing, so that -inf - -inf never arises.
Expr finiteOf(const Expr &x);
/// The expression where no x of finiteOf is -inf.
Expr assumeFinite(const Expr &expr);

/// A map that hides elements, of several columns: value = visible ? %dst : -inf, where visible names no element of an
/// operand.
template <typename T> class MaskMap : public MapOp<T> {
public:
  explicit MaskMap(T &op) : MapOp<T>(op) {}
  auto &s() const { return this->dst(); }
  Expr predicate() const { return this->value().operands()[0]; }
};
using ConstMask = MaskMap<const Op>;
bool isMask(const Op &op);
template <typename T> std::optional<MaskMap<T>> asMask(T &op) {
  return isMask(op) ? std::optional(MaskMap<T>(op)) : std::nullopt;
}
/// Calls `visit` with each mask, those in bodies included.
template <typename BlockType, typename Visitor> void forEachMask(BlockType &block, Visitor visit) {
  walk(block, [&](std::conditional_t<std::is_const_v<BlockType>, const Op, Op> &op) {
    if (isMask(op))
      visit(MaskMap(op));
  });
}
/// The value of such a map.
Expr maskOf(const Buffer &scores, const Expr &visible);

/// Of a map that leaves whole rows of a tile as they are, and clears the others: which ones, as a condition of q; null
/// of other ops.
Expr keptRowsOf(const Op &op);

/// How the exponent of a power is computed: s factor - x factor, one multiply-add; or (s - x) factor, for scores of any
/// size (Exponent of ops/exp2.h).
enum class ExponentOrder : uint8_t { ProductsFirst, DifferenceFirst };

/// A map that makes powers of scores of several columns, in place: value = exp2 of such an exponent, s being %dst and x
/// one of the row, finite or not.
struct Powers {
  const Operand *scores, *shift; ///< x is an element of shift
  Expr factor;
  bool isGuarded; ///< x of shift counts as 0 where it is -inf
  ExponentOrder order;
};
std::optional<Powers> asPowers(const Op &op);
bool isPowers(const Op &op);
/// Whether it is a product whose results powers are made of: scores. Those powers, maybe converted, are the left
/// operand of another product, which may use the same buffer.
bool isOfScores(const Kernel &kernel, const Op &op);
Expr powersOf(const Buffer &scores, const Expr &shift, const Expr &factor, ExponentOrder order);

/// A map to a constant: its value. Nothing of another op.
std::optional<float> asFill(const Op &op);
/// A map that adds x to dst, of several columns; that divides it by the row's x, and makes 0 of it where x is 0.
bool isSum(const Op &op);
bool isQuotient(const Op &op);
Expr quotientOf(const Buffer &dividend, const Buffer &divisor);

/// Whether both do the same to the same elements, bodies included.
bool isSame(const Op &a, const Op &b);

/// What an op is called in the ledger: its kind, or what a map or a reduction computes.
llvm::StringRef titleOf(const Op &op);

/// Whether the op takes the largest element (the sum) of rows, `with` none or that buffer.
bool isReduction(const Op &op, Reduction what);

} // namespace fagen::ir
