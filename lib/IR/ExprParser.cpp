// fagen: expressions from text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Precedence climbing over C's operators. Nesting and tree depth are limited, so no text can exhaust the stack.

#include "fagen/IR/Expr.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

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
    {"||", ExprKind::Or, 1}, {"&&", ExprKind::And, 2}, {"==", ExprKind::Eq, 3}, {"!=", ExprKind::Ne, 3},
    {"<=", ExprKind::Le, 4}, {">=", ExprKind::Ge, 4},  {"<", ExprKind::Lt, 4},  {">", ExprKind::Gt, 4},
    {"+", ExprKind::Add, 5}, {"-", ExprKind::Sub, 5},  {"*", ExprKind::Mul, 6}, {"%", ExprKind::Mod, 6},
};

std::optional<ExprKind> callByName(StringRef name) {
  if (name == "floor_div")
    return ExprKind::FloorDiv;
  if (name == "ceil_div")
    return ExprKind::CeilDiv;
  if (name == "min")
    return ExprKind::Min;
  if (name == "max")
    return ExprKind::Max;
  return std::nullopt;
}

class ExprParser {
public:
  ExprParser(StringRef text, std::string &error) : rest(text), error(error) {}

  /// Null after an error; `rest` then begins where it was found.
  Expr parse(unsigned minPrecedence) {
    if (++nesting > kMaxExprDepth)
      return fail("expression is nested deeper than " + std::to_string(kMaxExprDepth));
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
  Expr fail(const llvm::Twine &message) {
    if (error.empty())
      error = message.str();
    return {};
  }

  Expr join(ExprKind kind, const Expr &lhs, const Expr &rhs) {
    if (lhs.depth() >= kMaxExprDepth || rhs.depth() >= kMaxExprDepth)
      return fail("expression is nested deeper than " + std::to_string(kMaxExprDepth));
    return Expr::binary(kind, lhs, rhs);
  }

  const Operator *peekOperator() {
    skipSpace();
    for (const Operator &op : kOperators)
      if (rest.starts_with(op.text))
        return &op;
    return nullptr;
  }

  /// A minus before digits belongs to the number; before anything else, -x is 0 - x.
  Expr parseUnary() {
    skipSpace();
    if (!rest.starts_with("-"))
      return parsePrimary();
    rest = rest.drop_front();
    skipSpace();
    if (!rest.empty() && llvm::isDigit(rest.front()))
      return parseNumber(true);
    if (++nesting > kMaxExprDepth)
      return fail("expression is nested deeper than " + std::to_string(kMaxExprDepth));
    const Expr operand = parseUnary();
    --nesting;
    return operand ? join(ExprKind::Sub, Expr::constant(0), operand) : Expr();
  }

  Expr parsePrimary() {
    if (rest.empty())
      return fail("expected an expression");
    if (llvm::isDigit(rest.front()))
      return parseNumber(false);
    if (rest.front() == '(') {
      rest = rest.drop_front();
      Expr inner = parse(1);
      return inner && consume(')') ? inner : Expr();
    }
    const StringRef name = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (name.empty())
      return fail("expected an expression");
    rest = rest.drop_front(name.size());
    if (std::optional<ExprKind> call = callByName(name))
      return parseCall(*call);
    return Expr::variable(name);
  }

  Expr parseCall(ExprKind kind) {
    if (!consume('('))
      return {};
    Expr lhs = parse(1);
    if (!lhs || !consume(','))
      return {};
    Expr rhs = parse(1);
    if (!rhs || !consume(')'))
      return {};
    return join(kind, lhs, rhs);
  }

  Expr parseNumber(bool negative) {
    const StringRef digits = rest.take_while(llvm::isDigit);
    const StringRef word = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (word != digits)
      return fail("malformed number '" + word + "'");
    const std::string text = llvm::formatv("{0}{1}", negative ? "-" : "", digits);
    int64_t value = 0;
    if (StringRef(text).getAsInteger(10, value))
      return fail("number '" + digits + "' does not fit in 64 bits");
    rest = rest.drop_front(digits.size());
    return Expr::constant(value);
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
  Expr expr = parser.parse(1);
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
