// fagen: expressions from text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Precedence climbing over C's operators; a ? b : c binds least. Nesting and tree depth are limited, so no text can
// exhaust the stack.

#include "fagen/IR/Expr.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <limits>

using namespace fagen::ir;
using llvm::StringRef;

namespace {

struct Operator {
  StringRef text;
  ExprKind kind;
  unsigned precedence;
};

/// Longer spellings before their prefixes.
constexpr Operator kOperators[] = {
    {"||", ExprKind::Or, 1},   {"&&", ExprKind::And, 2},       {"==", ExprKind::Eq, 6},
    {"!=", ExprKind::Ne, 6},   {"<<", ExprKind::ShiftLeft, 8}, {">>", ExprKind::ShiftRight, 8},
    {"<=", ExprKind::Le, 7},   {">=", ExprKind::Ge, 7},        {"<", ExprKind::Lt, 7},
    {">", ExprKind::Gt, 7},    {"+", ExprKind::Add, 9},        {"-", ExprKind::Sub, 9},
    {"*", ExprKind::Mul, 10},  {"/", ExprKind::Div, 10},       {"%", ExprKind::Mod, 10},
    {"|", ExprKind::BitOr, 3}, {"^", ExprKind::BitXor, 4},     {"&", ExprKind::BitAnd, 5},
};

class ExprParser {
public:
  ExprParser(StringRef text, std::string &error) : rest(text), error(error) {}

  /// Null after an error; `rest` then begins where it was found.
  Expr parse() {
    const Expr condition = parse(1);
    if (!condition || !accept('?'))
      return condition;
    if (++nesting > kMaxExprDepth)
      return tooDeep();
    const Expr whenTrue = parse();
    const Expr whenFalse = whenTrue && consume(':') ? parse() : Expr();
    --nesting;
    if (!whenFalse)
      return {};
    return isTooDeep({condition, whenTrue, whenFalse}) ? tooDeep() : Expr::select(condition, whenTrue, whenFalse);
  }

  void skipSpace() {
    for (;;) {
      rest = rest.ltrim();
      if (!rest.starts_with("//"))
        return;
      rest = rest.drop_until([](char c) { return c == '\n'; });
    }
  }

  StringRef rest;

private:
  Expr parse(unsigned minPrecedence) {
    if (++nesting > kMaxExprDepth)
      return tooDeep();
    Expr lhs = parseUnary();
    while (lhs) {
      const Operator *op = peekOperator();
      if (!op || op->precedence < minPrecedence)
        break;
      rest = rest.drop_front(op->text.size());
      Expr rhs = parse(op->precedence + 1);
      lhs = rhs ? join(op->kind, lhs, rhs) : Expr();
    }
    --nesting;
    return lhs;
  }

  Expr fail(const llvm::Twine &message) {
    if (error.empty())
      error = message.str();
    return {};
  }

  Expr tooDeep() { return fail("expression is nested deeper than " + std::to_string(kMaxExprDepth)); }

  static bool isTooDeep(llvm::ArrayRef<Expr> operands) {
    return llvm::any_of(operands, [](const Expr &operand) { return operand.depth() >= kMaxExprDepth; });
  }

  Expr join(ExprKind kind, const Expr &lhs, const Expr &rhs) {
    return isTooDeep({lhs, rhs}) ? tooDeep() : Expr::binary(kind, lhs, rhs);
  }
  Expr join(ExprKind kind, const Expr &operand) { return isTooDeep(operand) ? tooDeep() : Expr::unary(kind, operand); }

  const Operator *peekOperator() {
    skipSpace();
    for (const Operator &op : kOperators)
      if (rest.starts_with(op.text))
        return &op;
    return nullptr;
  }

  /// A minus before a number belongs to it; before anything else, -x is 0 - x.
  Expr parseUnary() {
    skipSpace();
    const bool isMinus = rest.starts_with("-");
    if (!isMinus && !rest.starts_with("!"))
      return parsePrimary();
    rest = rest.drop_front();
    skipSpace();
    if (isMinus && !rest.empty() && llvm::isDigit(rest.front()))
      return parseNumber(true);
    if (isMinus && atWord("inf"))
      return parseInfinity(-std::numeric_limits<float>::infinity());
    if (++nesting > kMaxExprDepth)
      return tooDeep();
    const Expr operand = parseUnary();
    --nesting;
    if (!operand)
      return {};
    return isMinus ? join(ExprKind::Sub, Expr::constant(0), operand) : join(ExprKind::Not, operand);
  }

  StringRef word() const {
    return rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
  }
  bool atWord(StringRef text) const { return word() == text; }

  Expr parseInfinity(float value) {
    rest = rest.drop_front(word().size());
    return Expr::real(value);
  }

  Expr parsePrimary() {
    if (rest.empty())
      return fail("expected an expression");
    if (llvm::isDigit(rest.front()))
      return parseNumber(false);
    if (rest.front() == '(') {
      rest = rest.drop_front();
      Expr inner = parse();
      return inner && consume(')') ? inner : Expr();
    }
    if (atWord("inf"))
      return parseInfinity(std::numeric_limits<float>::infinity());
    const StringRef begin = rest;
    const bool isElement = rest.consume_front("%"); // where an operand stands, % is none
    const StringRef name = word();
    if (name.empty()) {
      rest = begin;
      return fail("expected an expression");
    }
    rest = rest.drop_front(name.size());
    if (isElement)
      return rest.starts_with("[") ? parseRead(name) : Expr::variable(begin.take_front(name.size() + 1));
    if (std::optional<ExprKind> call = callByName(name))
      return parseCall(*call);
    return Expr::variable(name);
  }

  Expr parseRead(StringRef buffer) {
    llvm::SmallVector<Expr, 4> indices;
    do {
      rest = rest.drop_front(); // '[' or ','
      indices.push_back(parse());
      if (!indices.back())
        return {};
      skipSpace();
    } while (rest.starts_with(","));
    if (!consume(']'))
      return {};
    return isTooDeep(indices) ? tooDeep() : Expr::read(buffer, indices);
  }

  static bool isOfOne(ExprKind kind) { return kind < ExprKind::Select; } // the kinds are in this order

  Expr parseCall(ExprKind kind) {
    if (!consume('('))
      return {};
    const Expr lhs = parse();
    if (!lhs)
      return {};
    if (isOfOne(kind))
      return consume(')') ? join(kind, lhs) : Expr();
    if (!consume(','))
      return {};
    const Expr rhs = parse();
    return rhs && consume(')') ? join(kind, lhs, rhs) : Expr();
  }

  /// 12, or with a point or an exponent a real number: 1.5, 2e-05.
  Expr parseNumber(bool negative) {
    const StringRef digits = rest.take_while(llvm::isDigit);
    if (rest.size() > digits.size() && (rest[digits.size()] == '.' || rest[digits.size()] == 'e'))
      return parseReal(negative);
    if (word() != digits)
      return fail("malformed number '" + word() + "'");
    const std::string text = llvm::formatv("{0}{1}", negative ? "-" : "", digits);
    int64_t value = 0;
    if (StringRef(text).getAsInteger(10, value))
      return fail("number '" + digits + "' does not fit in 64 bits");
    rest = rest.drop_front(digits.size());
    return Expr::constant(value);
  }

  Expr parseReal(bool negative) {
    char previous = 0;
    const StringRef digits = rest.take_while([&](char c) {
      const bool isSign = (c == '-' || c == '+') && previous == 'e';
      previous = c;
      return llvm::isAlnum(c) || c == '_' || c == '.' || isSign;
    });
    double value = 0;
    if (digits.contains_insensitive("x") || digits.getAsDouble(value))
      return fail("malformed number '" + digits + "'");
    if (std::abs(value) > std::numeric_limits<float>::max())
      return fail("number '" + digits + "' does not fit in f32");
    rest = rest.drop_front(digits.size());
    return Expr::real(float(negative ? -value : value));
  }

  bool accept(char c) {
    skipSpace();
    return rest.consume_front(StringRef(&c, 1));
  }

  bool consume(char c) {
    skipSpace();
    if (rest.empty() || rest.front() != c) {
      fail(llvm::Twine("expected '") + llvm::Twine(c) + "'");
      return false;
    }
    rest = rest.drop_front();
    return true;
  }

  std::string &error;
  unsigned nesting = 0;
};

} // namespace

Expr fagen::ir::consumeExpr(StringRef &text, std::string &error) {
  error.clear();
  ExprParser parser(text, error);
  Expr expr = parser.parse();
  text = parser.rest;
  return expr;
}

Expr fagen::ir::parseExpr(StringRef text, std::string &error) {
  Expr expr = consumeExpr(text, error);
  if (!expr)
    return {};
  ExprParser tail(text, error);
  tail.skipSpace();
  if (tail.rest.empty())
    return expr;
  error = "unexpected '" + tail.rest.take_front(16).str() + "' after the expression";
  return {};
}
