// fagen: the types of expressions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/ExprTypes.h"

#include "fagen/IR/IR.h"
#include "fagen/IR/RunValues.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace fagen::ir;
using llvm::StringRef;

namespace {

class Typer {
public:
  Typer(llvm::function_ref<ExprType(StringRef)> lookup, std::string &error) : lookup(lookup), error(error) {}

  std::optional<ExprType> typeOf(const Expr &expr) {
    switch (expr.kind()) {
    case ExprKind::Constant:
      return ExprType::Integer;
    case ExprKind::Real:
      return ExprType::Real;
    case ExprKind::Variable:
      return lookup(expr.name());
    case ExprKind::Read:
      for (const Expr &index : expr.indices())
        if (!wants(index, ExprType::Integer, expr))
          return std::nullopt;
      return lookup(expr.operands().front().name());
    case ExprKind::Exp2:
    case ExprKind::Log2:
    case ExprKind::Tanh:
    case ExprKind::Sqrt:
      return wants(expr.operand(), ExprType::Real, expr) ? std::optional(ExprType::Real) : std::nullopt;
    case ExprKind::F32:
      return wants(expr.operand(), ExprType::Integer, expr) ? std::optional(ExprType::Real) : std::nullopt;
    case ExprKind::I32:
      return wants(expr.operand(), ExprType::Real, expr) ? std::optional(ExprType::Integer) : std::nullopt;
    case ExprKind::Abs:
    case ExprKind::Ascending:
    case ExprKind::Lowest:
    case ExprKind::Highest:
      return typeOf(expr.operand());
    case ExprKind::SeenTiles:
    case ExprKind::WholeTiles:
    case ExprKind::Not:
      return wants(expr.operand(), ExprType::Integer, expr) ? std::optional(ExprType::Integer) : std::nullopt;
    case ExprKind::Select:
      if (!wants(expr.operands()[0], ExprType::Integer, expr))
        return std::nullopt;
      return typeOfBoth(expr, expr.operands()[1], expr.operands()[2]);
    default:
      return typeOfBinary(expr);
    }
  }

private:
  std::optional<ExprType> typeOfBinary(const Expr &expr) {
    const std::optional<ExprType> type = typeOfBoth(expr, expr.lhs(), expr.rhs());
    if (!type)
      return std::nullopt;
    switch (expr.kind()) {
    case ExprKind::Add:
    case ExprKind::Sub:
    case ExprKind::Mul:
    case ExprKind::Min:
    case ExprKind::Max:
      return type;
    case ExprKind::Div:
      return is(*type, ExprType::Real, expr.lhs(), expr);
    case ExprKind::FloorDiv:
    case ExprKind::CeilDiv:
    case ExprKind::Mod:
    case ExprKind::FloorMod:
    case ExprKind::TileOf:
    case ExprKind::BitAnd:
    case ExprKind::BitOr:
    case ExprKind::BitXor:
    case ExprKind::ShiftLeft:
    case ExprKind::ShiftRight:
    case ExprKind::And:
    case ExprKind::Or:
      return is(*type, ExprType::Integer, expr.lhs(), expr);
    default: // comparisons
      return ExprType::Integer;
    }
  }

  std::optional<ExprType> typeOfBoth(const Expr &expr, const Expr &a, const Expr &b) {
    const std::optional<ExprType> ofA = typeOf(a), ofB = typeOf(b);
    if (!ofA || !ofB)
      return std::nullopt;
    if (*ofA == *ofB)
      return ofA;
    error = (llvm::Twine("'") + expr.str() + "' mixes '" + a.str() + "', " + name(*ofA) + ", with '" + b.str() + "', " +
             name(*ofB) + "; f32() makes a real number of an integer")
                .str();
    return std::nullopt;
  }

  bool wants(const Expr &operand, ExprType wanted, const Expr &expr) {
    const std::optional<ExprType> type = typeOf(operand);
    return type && is(*type, wanted, operand, expr);
  }

  std::optional<ExprType> is(ExprType type, ExprType wanted, const Expr &operand, const Expr &expr) {
    if (type == wanted)
      return type;
    error = (llvm::Twine("'") + operand.str() + "' in '" + expr.str() + "' is " + name(type) + ", where " +
             name(wanted) + " is wanted")
                .str();
    return std::nullopt;
  }

  static StringRef name(ExprType type) { return type == ExprType::Real ? "a real number" : "an integer"; }

  llvm::function_ref<ExprType(StringRef)> lookup;
  std::string &error;
};

} // namespace

std::optional<ExprType> fagen::ir::typeOf(const Expr &expr, llvm::function_ref<ExprType(StringRef)> lookup,
                                          std::string &error) {
  error.clear();
  return Typer(lookup, error).typeOf(expr);
}

/// Of tensors that are read; elements of others are real numbers to a map.
static bool holdsIntegers(ElementType type) {
  return type == ElementType::I32 || type == ElementType::U8 || type == ElementType::Bit;
}

bool fagen::ir::hasRunValue(const Kernel &kernel, const RunValueInfo &info) {
  return isOfEveryKernel(info) || !kernel.hasOwnParams();
}

/// Of a name where these lets are known. A let names only those before it, so that wrong ones end, too.
static bool isRealAmong(const Kernel &kernel, llvm::ArrayRef<Let> lets, StringRef name) {
  if (name.consume_front("%")) {
    const Buffer *const buffer = kernel.buffer(name);
    return !buffer || !holdsIntegers(buffer->type);
  }
  if (const RunValueInfo *const info = findRunValue(name);
      info && info->kind == RunKind::Real && hasRunValue(kernel, *info))
    return true;
  if (llvm::any_of(kernel.scalars, [&](const Scalar &scalar) { return scalar.isReal && scalar.name == name; }))
    return true;
  const auto let = llvm::find_if(lets, [&](const Let &let) { return let.name == name; });
  if (let == lets.end() || let->source || let->judged || !let->value)
    return false;
  std::string error;
  auto typeOfName = [&](StringRef each) {
    return isRealAmong(kernel, lets.take_front(let - lets.begin()), each) ? ExprType::Real : ExprType::Integer;
  };
  return typeOf(let->value, typeOfName, error) == ExprType::Real;
}

bool fagen::ir::isReal(const Kernel &kernel, StringRef name) { return isRealAmong(kernel, kernel.lets, name); }
