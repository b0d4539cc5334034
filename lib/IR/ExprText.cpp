// fagen: expressions as text, in C's syntax; ExprParser.cpp reads it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/Expr.h"

#include <fmt/format.h>

#include <cmath>

using namespace fagen::ir;
using llvm::StringRef;

static constexpr std::pair<ExprKind, StringRef> kCalls[] = {{ExprKind::FloorDiv, "floor_div"},
                                                            {ExprKind::CeilDiv, "ceil_div"},
                                                            {ExprKind::FloorMod, "floor_mod"},
                                                            {ExprKind::Min, "min"},
                                                            {ExprKind::Max, "max"},
                                                            {ExprKind::Exp2, "exp2"},
                                                            {ExprKind::Log2, "log2"},
                                                            {ExprKind::Tanh, "tanh"},
                                                            {ExprKind::Abs, "abs"},
                                                            {ExprKind::Sqrt, "sqrt"},
                                                            {ExprKind::F32, "f32"},
                                                            {ExprKind::I32, "i32"},
                                                            {ExprKind::Ascending, "ascending"},
                                                            {ExprKind::Lowest, "lowest"},
                                                            {ExprKind::Highest, "highest"},
                                                            {ExprKind::SeenTiles, "seen_tiles"},
                                                            {ExprKind::WholeTiles, "whole_tiles"},
                                                            {ExprKind::TileOf, "tile_of"}};

StringRef fagen::ir::nameOfCall(ExprKind kind) {
  for (const auto &[known, name] : kCalls)
    if (known == kind)
      return name;
  return {};
}

std::optional<ExprKind> fagen::ir::callByName(StringRef name) {
  for (const auto &[kind, known] : kCalls)
    if (known == name)
      return kind;
  return std::nullopt;
}

namespace {

/// How C spells a kind, and how tightly it binds; calls bind like names.
struct Spelling {
  const char *text;
  unsigned precedence;
  bool isCall;
};
constexpr unsigned kTightest = 11;
constexpr unsigned kEquality = 6, kOrder = 7; // comparisons

Spelling spellingOf(ExprKind kind) {
  switch (kind) {
  case ExprKind::Select:
    return {" ? ", 0, false};
  case ExprKind::Or:
    return {" || ", 1, false};
  case ExprKind::And:
    return {" && ", 2, false};
  case ExprKind::BitOr:
    return {" | ", 3, false};
  case ExprKind::BitXor:
    return {" ^ ", 4, false};
  case ExprKind::BitAnd:
    return {" & ", 5, false};
  case ExprKind::Eq:
    return {" == ", kEquality, false};
  case ExprKind::Ne:
    return {" != ", kEquality, false};
  case ExprKind::Lt:
    return {" < ", kOrder, false};
  case ExprKind::Le:
    return {" <= ", kOrder, false};
  case ExprKind::Gt:
    return {" > ", kOrder, false};
  case ExprKind::Ge:
    return {" >= ", kOrder, false};
  case ExprKind::ShiftLeft:
    return {" << ", 8, false};
  case ExprKind::ShiftRight:
    return {" >> ", 8, false};
  case ExprKind::Add:
    return {" + ", 9, false};
  case ExprKind::Sub:
    return {" - ", 9, false};
  case ExprKind::Mul:
    return {" * ", 10, false};
  case ExprKind::Div:
    return {" / ", 10, false};
  case ExprKind::Mod:
    return {" % ", 10, false};
  case ExprKind::Not:
    return {"!", kTightest, false};
  case ExprKind::FloorDiv:
  case ExprKind::CeilDiv:
  case ExprKind::FloorMod:
  case ExprKind::Min:
  case ExprKind::Max:
  case ExprKind::Exp2:
  case ExprKind::Log2:
  case ExprKind::Tanh:
  case ExprKind::Abs:
  case ExprKind::Sqrt:
  case ExprKind::F32:
  case ExprKind::I32:
  case ExprKind::Ascending:
  case ExprKind::Lowest:
  case ExprKind::Highest:
  case ExprKind::SeenTiles:
  case ExprKind::WholeTiles:
  case ExprKind::TileOf:
    return {nullptr, kTightest, true};
  case ExprKind::Constant:
  case ExprKind::Real:
  case ExprKind::Variable:
  case ExprKind::Read:
    break;
  }
  return {"", kTightest, false};
}

void appendText(const Expr &expr, std::string &text);

bool isOfBits(ExprKind kind) { return kind >= ExprKind::BitAnd && kind <= ExprKind::ShiftRight; }

/// An operand of `parent`. Operators associate to the left. What compilers warn about gets parentheses though the
/// grammar needs none: a comparison inside a comparison, && inside ||, all but names and calls next to an operator of
/// bits.
void appendOperand(const Expr &operand, ExprKind parent, bool isRight, std::string &text) {
  const unsigned outer = spellingOf(parent).precedence, inner = spellingOf(operand.kind()).precedence;
  const bool isComparison = outer == kEquality || outer == kOrder;
  const bool mixesBits = isOfBits(parent) || isOfBits(operand.kind());
  const bool wrap = inner < outer || (inner == outer && (isRight || isComparison)) ||
                    (isComparison && (inner == kEquality || inner == kOrder)) || (outer == 1 && inner == 2) ||
                    (mixesBits && inner != kTightest);
  if (wrap)
    text += '(';
  appendText(operand, text);
  if (wrap)
    text += ')';
}

/// The shortest text that stands for this f32 and for no other; a point or an exponent tells it from an integer.
std::string spellReal(float value) {
  const std::string digits = fmt::format("{}", value);
  return std::isinf(value) || digits.find_first_of(".e") != std::string::npos ? digits : digits + ".0";
}

void appendCall(const Expr &expr, std::string &text) {
  text += nameOfCall(expr.kind());
  text += '(';
  for (const Expr &operand : expr.operands()) {
    if (&operand != expr.operands().begin())
      text += ", ";
    appendText(operand, text);
  }
  text += ')';
}

void appendRead(const Expr &expr, std::string &text) {
  text += expr.operands().front().name();
  const char *separator = "[";
  for (const Expr &index : expr.indices()) {
    text += separator;
    appendText(index, text);
    separator = ", ";
  }
  text += ']';
}

void appendText(const Expr &expr, std::string &text) {
  const Spelling spelling = spellingOf(expr.kind());
  if (spelling.isCall)
    return appendCall(expr, text);
  switch (expr.kind()) {
  case ExprKind::Constant:
    text += std::to_string(expr.value());
    return;
  case ExprKind::Real:
    text += spellReal(expr.realValue());
    return;
  case ExprKind::Variable:
    text += expr.name();
    return;
  case ExprKind::Read:
    return appendRead(expr, text);
  case ExprKind::Not:
    text += spelling.text;
    return appendOperand(expr.operand(), expr.kind(), false, text);
  case ExprKind::Select:
    appendOperand(expr.operands()[0], expr.kind(), true, text); // a ? b : c to the left of ? gets parentheses
    text += spelling.text;
    appendText(expr.operands()[1], text);
    text += " : ";
    return appendText(expr.operands()[2], text);
  default:
    appendOperand(expr.lhs(), expr.kind(), false, text);
    text += spelling.text;
    appendOperand(expr.rhs(), expr.kind(), true, text);
  }
}

} // namespace

std::string Expr::str() const {
  std::string text;
  if (node)
    appendText(*this, text);
  return text;
}
