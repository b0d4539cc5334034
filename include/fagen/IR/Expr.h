// fagen: integer expressions over run-time values: loop bounds, ring positions, predicates and masks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An Expr is an immutable tree, cheap to copy. Values are 64-bit integers; comparisons and logic give 0 or 1.
// The same printer serves the textual IR and the generated CUDA, since both spell these operators as C does (% too);
// floor_div, ceil_div, min and max are calls. Factories fold constants and sums with constants.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace fagen::ir {

enum class ExprKind : uint8_t {
  Constant,
  Variable,
  Add,
  Sub,
  Mul,
  FloorDiv,
  CeilDiv,
  Mod,
  Min,
  Max,
  Lt,
  Le,
  Gt,
  Ge,
  Eq,
  Ne,
  And,
  Or
};

class Expr {
public:
  Expr() = default; ///< null: "no expression"
  static Expr constant(int64_t value);
  static Expr variable(llvm::StringRef name);
  static Expr binary(ExprKind kind, Expr lhs, Expr rhs);

  explicit operator bool() const { return node != nullptr; }
  ExprKind kind() const;
  int64_t value() const;        ///< of a Constant
  llvm::StringRef name() const; ///< of a Variable
  const Expr &lhs() const;
  const Expr &rhs() const;
  bool isBinary() const;  ///< neither a constant nor a variable
  unsigned depth() const; ///< of the tree; 0 of a null expression

  /// C syntax with parentheses by precedence, and where compilers would warn without them.
  std::string str() const;
  /// The value when `lookup` knows every variable (division by zero gives nothing).
  std::optional<int64_t> evaluate(llvm::function_ref<std::optional<int64_t>(llvm::StringRef)> lookup) const;
  /// Every variable `name` replaced by `replacement`.
  Expr substitute(llvm::StringRef name, const Expr &replacement) const;
  bool uses(llvm::StringRef name) const;
  /// From left to right, as often as each occurs.
  void forEachVariable(llvm::function_ref<void(llvm::StringRef)> visit) const;
  bool operator==(const Expr &other) const; ///< structural

private:
  struct Node;
  std::shared_ptr<const Node> node;
};

struct Expr::Node {
  ExprKind kind;
  int64_t value = 0;
  std::string name;
  Expr lhs, rhs;
  unsigned depth = 1;
};

inline ExprKind Expr::kind() const {
  assert(node && "no expression");
  return node->kind;
}

inline int64_t Expr::value() const {
  assert(kind() == ExprKind::Constant && "only constants have a value");
  return node->value;
}

inline llvm::StringRef Expr::name() const {
  assert(kind() == ExprKind::Variable && "only variables have a name");
  return node->name;
}

inline const Expr &Expr::lhs() const {
  assert(isBinary() && "only binary nodes have operands");
  return node->lhs;
}

inline const Expr &Expr::rhs() const {
  assert(isBinary() && "only binary nodes have operands");
  return node->rhs;
}

inline bool Expr::isBinary() const { return kind() != ExprKind::Constant && kind() != ExprKind::Variable; }

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
inline Expr constant(int64_t value) { return Expr::constant(value); }
inline Expr variable(llvm::StringRef name) { return Expr::variable(name); }

/// Trees that are read from text are at most so deep; whoever walks them may recurse.
inline constexpr unsigned kMaxExprDepth = 200;

/// Parses what str() prints, and unary minus. Null with `error` set when the text is not an expression.
Expr parseExpr(llvm::StringRef text, std::string &error);

/// Parses the longest expression at the start of `text` and drops it; white space and // comments may precede every
/// token. On an error `text` begins where it was found.
Expr consumeExpr(llvm::StringRef &text, std::string &error);

} // namespace fagen::ir
