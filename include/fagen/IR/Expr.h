// fagen: expressions over run-time values and elements: loop bounds, ring positions, masks, what maps compute.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An Expr is an immutable tree, cheap to copy. It is an integer of 64 bits, a truth value (0 or 1) or a real number,
// f32 on the device; typeOf (fagen/IR/ExprTypes.h) says which. A variable whose name begins with % is an element of the
// buffer of that name; %table[i, j] reads one of a global buffer. The same printer serves the textual IR and, for
// integers, the generated CUDA, since both spell these operators as C does (% too); floor_div, ceil_div, min and max
// are calls. Factories fold integer constants and sums with them.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace fagen::ir {

enum class ExprKind : uint8_t {
  Constant, ///< an integer
  Real,     ///< a real constant
  Variable,
  Read, ///< of an element in global memory; operands are the buffer, as a variable, and an index for each dimension
  Exp2,
  Log2,
  Tanh,
  Abs,
  Sqrt,
  F32,       ///< an integer as a real number
  I32,       ///< a real number as an integer, towards zero
  Ascending, ///< a read whose value, as the caller promises, does not fall when the last index grows
  Lowest,    ///< of the elements of a box: a read with the least index of each dimension, then with the largest of each
  Highest,   ///< likewise
  SeenTiles, ///< how many key tiles a judgement says that rows see, all or in part
  WholeTiles, ///< how many of these every row sees whole
  Select,
  Add,
  Sub,
  Mul,
  Div, ///< of real numbers
  FloorDiv,
  CeilDiv,
  Mod,
  FloorMod, ///< what FloorDiv leaves; the sign is the divisor's
  Min,
  Max,
  TileOf, ///< the number of a judgement's n-th tile: those seen in part first
  BitAnd,
  BitOr,
  BitXor,
  ShiftLeft,
  ShiftRight, ///< keeps the sign
  Lt,
  Le,
  Gt,
  Ge,
  Eq,
  Ne,
  And,
  Or,
  Not
};

class Expr {
public:
  Expr() = default; ///< null: "no expression"
  static Expr constant(int64_t value);
  static Expr real(float value);
  static Expr variable(llvm::StringRef name);
  static Expr unary(ExprKind kind, Expr operand);
  static Expr binary(ExprKind kind, Expr lhs, Expr rhs);
  static Expr select(Expr condition, Expr whenTrue, Expr whenFalse);
  static Expr read(llvm::StringRef buffer, llvm::ArrayRef<Expr> indices); ///< %buffer[indices]

  explicit operator bool() const { return node != nullptr; }
  ExprKind kind() const;
  int64_t value() const;                 ///< of a Constant
  float realValue() const;               ///< of a Real
  llvm::StringRef name() const;          ///< of a Variable
  llvm::ArrayRef<Expr> operands() const; ///< none of constants and variables
  const Expr &operand() const;           ///< of a unary node
  const Expr &lhs() const;               ///< of a binary node
  const Expr &rhs() const;
  bool isBinary() const { return operands().size() == 2 && kind() != ExprKind::Read; }
  llvm::ArrayRef<Expr> indices() const; ///< of a Read
  unsigned depth() const;               ///< of the tree; 0 of a null expression

  /// C syntax with parentheses by precedence, and where compilers would warn without them.
  std::string str() const;
  /// The integer when `lookup` knows every variable (division by zero and real numbers give nothing).
  std::optional<int64_t> evaluate(llvm::function_ref<std::optional<int64_t>(llvm::StringRef)> lookup) const;
  /// Every variable `name` replaced by `replacement`.
  Expr substitute(llvm::StringRef name, const Expr &replacement) const;
  /// From the leaves up, each node replaced by what `change` gives for it; by itself where that is null.
  Expr rewritten(llvm::function_ref<Expr(const Expr &)> change) const;
  /// Of the same kind with other operands, folded.
  Expr withOperands(llvm::ArrayRef<Expr> operands) const;
  bool uses(llvm::StringRef name) const;
  /// From left to right, as often as each occurs.
  void forEachVariable(llvm::function_ref<void(llvm::StringRef)> visit) const;
  bool operator==(const Expr &other) const; ///< structural

private:
  static Expr make(ExprKind kind, llvm::ArrayRef<Expr> operands);
  bool uses(llvm::StringRef name, uint64_t bit) const;

  struct Node;
  std::shared_ptr<const Node> node;
};

struct Expr::Node {
  ExprKind kind;
  int64_t value = 0;
  float real = 0;
  std::string name;
  llvm::SmallVector<Expr, 2> operands;
  unsigned depth = 1;
  uint64_t variables = 0; ///< a bit for each name that occurs, by its hash: what has none of a name's does not use it
};

inline ExprKind Expr::kind() const {
  assert(node && "no expression");
  return node->kind;
}

inline int64_t Expr::value() const {
  assert(kind() == ExprKind::Constant && "only constants have a value");
  return node->value;
}

inline float Expr::realValue() const {
  assert(kind() == ExprKind::Real && "only real constants have a real value");
  return node->real;
}

inline llvm::StringRef Expr::name() const {
  assert(kind() == ExprKind::Variable && "only variables have a name");
  return node->name;
}

inline llvm::ArrayRef<Expr> Expr::operands() const {
  assert(node && "no expression");
  return node->operands;
}

inline const Expr &Expr::operand() const {
  assert(operands().size() == 1 && "only unary nodes have a single operand");
  return node->operands[0];
}

inline const Expr &Expr::lhs() const {
  assert(isBinary() && "only binary nodes have two operands");
  return node->operands[0];
}

inline const Expr &Expr::rhs() const {
  assert(isBinary() && "only binary nodes have two operands");
  return node->operands[1];
}

inline llvm::ArrayRef<Expr> Expr::indices() const {
  assert(kind() == ExprKind::Read && "only reads have indices");
  return operands().drop_front();
}

inline unsigned Expr::depth() const { return node ? node->depth : 0; }

inline Expr operator+(Expr a, Expr b) { return Expr::binary(ExprKind::Add, std::move(a), std::move(b)); }
inline Expr operator-(Expr a, Expr b) { return Expr::binary(ExprKind::Sub, std::move(a), std::move(b)); }
inline Expr operator*(Expr a, Expr b) { return Expr::binary(ExprKind::Mul, std::move(a), std::move(b)); }
inline Expr operator%(Expr a, Expr b) { return Expr::binary(ExprKind::Mod, std::move(a), std::move(b)); }
inline Expr floorDiv(Expr a, Expr b) { return Expr::binary(ExprKind::FloorDiv, std::move(a), std::move(b)); }
inline Expr ceilDiv(Expr a, Expr b) { return Expr::binary(ExprKind::CeilDiv, std::move(a), std::move(b)); }
inline Expr min(Expr a, Expr b) { return Expr::binary(ExprKind::Min, std::move(a), std::move(b)); }
inline Expr max(Expr a, Expr b) { return Expr::binary(ExprKind::Max, std::move(a), std::move(b)); }
inline Expr lessThan(Expr a, Expr b) { return Expr::binary(ExprKind::Lt, std::move(a), std::move(b)); }
inline Expr lessEqual(Expr a, Expr b) { return Expr::binary(ExprKind::Le, std::move(a), std::move(b)); }
inline Expr logicalAnd(Expr a, Expr b) { return Expr::binary(ExprKind::And, std::move(a), std::move(b)); }
inline Expr operator/(Expr a, Expr b) { return Expr::binary(ExprKind::Div, std::move(a), std::move(b)); }
inline Expr equal(Expr a, Expr b) { return Expr::binary(ExprKind::Eq, std::move(a), std::move(b)); }
inline Expr greaterThan(Expr a, Expr b) { return Expr::binary(ExprKind::Gt, std::move(a), std::move(b)); }
inline Expr exp2(Expr a) { return Expr::unary(ExprKind::Exp2, std::move(a)); }
inline Expr select(Expr condition, Expr a, Expr b) {
  return Expr::select(std::move(condition), std::move(a), std::move(b));
}
inline Expr real(float value) { return Expr::real(value); }
inline Expr constant(int64_t value) { return Expr::constant(value); }
inline Expr variable(llvm::StringRef name) { return Expr::variable(name); }

/// Whether it is an integer or a truth value of the run, made of constants, variables and operators of two operands:
/// what bounds of loops, positions and sizes may be.
bool isOfIntegers(const Expr &expr);

/// Likewise, or a choice between such, or an element of a global buffer at such indices: what says where elements lie.
bool isOfPlacesInMemory(const Expr &expr);

/// Whether it names no element of an operand: it is one value for each place.
bool isOfPlaces(const Expr &expr);

/// Of kinds that are spelled as calls; empty of others, and nothing of other names.
llvm::StringRef nameOfCall(ExprKind kind);
std::optional<ExprKind> callByName(llvm::StringRef name);

/// Trees that are read from text are at most so deep; whoever walks them may recurse.
inline constexpr unsigned kMaxExprDepth = 200;

/// Parses what str() prints, and the unary minus of integers. Null with `error` set when the text is not an expression.
Expr parseExpr(llvm::StringRef text, std::string &error);

/// Parses the longest expression at the start of `text` and drops it; white space and // comments may precede every
/// token. On an error `text` begins where it was found.
Expr consumeExpr(llvm::StringRef &text, std::string &error);

} // namespace fagen::ir
