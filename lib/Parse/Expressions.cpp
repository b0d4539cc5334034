// fagen: expressions of when, select and require, and those of forms.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ParserImpl.h"

#include "llvm/ADT/ScopeExit.h"

using namespace llvm;

namespace fagen {

static constexpr unsigned kLevelCount = 10;

/// The binary operator of a level of precedence, the loosest first, that the token is; else null. Those of bits stand
/// in forms only.
static const char *operatorAt(const Token &token, unsigned level, bool isInForm) {
  static constexpr const char *kLevels[kLevelCount][5] = {
      {"||", nullptr},     {"&&", nullptr},          {"|", nullptr},         {"^", nullptr},
      {"&", nullptr},      {"==", "!=", nullptr},    {"<", "<=", ">", ">="}, {"<<", ">>", nullptr},
      {"+", "-", nullptr}, {"*", "/", "%", nullptr},
  };
  const bool isOfBits = (level >= 2 && level <= 4) || level == 7;
  if (isOfBits && !isInForm)
    return nullptr;
  for (const char *const *text = kLevels[level]; *text; ++text)
    if (token.kind == Token::Punctuation && token.text == *text)
      return *text;
  return nullptr;
}

std::unique_ptr<ast::Expr> Parser::parseSelect() {
  if (!enter(exprDepth))
    return nullptr;
  auto leave = make_scope_exit([&] { --exprDepth; });
  SMLoc begin = here();
  std::unique_ptr<ast::Expr> condition = parseBinary(0);
  if (!condition || !accept("?"))
    return condition;
  auto expr = std::make_unique<ast::Expr>();
  expr->kind = ast::Expr::Select;
  expr->operands.push_back(std::move(condition));
  expr->operands.push_back(parseSelect());
  if (!expr->operands.back() || !expect(":", "before the value when the condition is false"))
    return nullptr;
  expr->operands.push_back(parseSelect());
  if (!expr->operands.back())
    return nullptr;
  expr->range = rangeFrom(begin);
  return expr;
}

/// Reports a comparison of a comparison, as `a < b < c`: specs are not read as mathematics is.
bool Parser::isChained(unsigned level, const ast::Expr &left) {
  constexpr unsigned kEquality = 5, kRelation = 6;
  if (level != kEquality && level != kRelation)
    return false;
  auto textOf = [](SMRange range) {
    return StringRef(range.Start.getPointer(), range.End.getPointer() - range.Start.getPointer());
  };
  const StringRef middle = textOf(left.operands[1]->range);
  fail("comparisons do not chain: write '" + textOf(left.range) + " && " + middle + " " + token.text + " ...'");
  return true;
}

std::unique_ptr<ast::Expr> Parser::parseBinary(unsigned level) {
  if (level == kLevelCount)
    return parseUnary();
  SMLoc begin = here();
  std::unique_ptr<ast::Expr> left = parseBinary(level + 1);
  unsigned length = 0;
  while (left) {
    const char *text = operatorAt(token, level, isInForm);
    if (!text)
      return left;
    if (length != 0 && isChained(level, *left))
      return nullptr;
    if (++length > kMaxDepth && !fail("more than " + Twine(kMaxDepth) + " operators in a row"))
      return nullptr;
    advance();
    std::unique_ptr<ast::Expr> right = parseBinary(level + 1);
    if (!right)
      return nullptr;
    auto expr = std::make_unique<ast::Expr>();
    expr->kind = ast::Expr::Binary;
    expr->name = text;
    expr->operands.push_back(std::move(left));
    expr->operands.push_back(std::move(right));
    expr->range = rangeFrom(begin);
    left = std::move(expr);
  }
  return nullptr;
}

std::unique_ptr<ast::Expr> Parser::parseUnary() {
  if (!enter(exprDepth))
    return nullptr;
  auto leave = make_scope_exit([&] { --exprDepth; });
  if (!token.is("-") && !token.is("!"))
    return parsePrimary();
  auto expr = std::make_unique<ast::Expr>();
  SMLoc begin = here();
  expr->kind = ast::Expr::Unary;
  expr->name = token.text.str();
  advance();
  expr->operands.push_back(parseUnary());
  if (!expr->operands[0])
    return nullptr;
  expr->range = rangeFrom(begin);
  return expr;
}

std::unique_ptr<ast::Expr> Parser::parsePrimary() {
  if (token.kind == Token::Integer || token.kind == Token::Decimal)
    return parseNumber();
  if (accept("(")) {
    std::unique_ptr<ast::Expr> inner = parseExpr();
    return inner && expect(")", "to match '('", operatorHint()) ? std::move(inner) : nullptr;
  }
  if (token.kind != Token::Word) {
    fail("expected a number, a name or '(', not " + describeToken() + operandHint());
    return nullptr;
  }
  const bool isOtherOperator = token.is("not") || (token.is("if") && isInForm);
  if (isOtherOperator && (ahead.kind == Token::Word || ahead.is("("))) {
    fail("unexpected '" + token.text + "'" + operatorHint());
    return nullptr;
  }
  if (ahead.is("("))
    return parseCall();
  if (isInForm && ahead.is("["))
    return parseRead();
  auto expr = std::make_unique<ast::Expr>();
  expr->kind = ast::Expr::Variable;
  expr->name = token.text.str();
  expr->range = token.range();
  advance();
  return expr;
}

bool Parser::applyUnit(int64_t &number) {
  if (token.is("KiB"))
    number *= 1024;
  else if (!token.is("B"))
    return fail("unknown unit '" + token.text + "'; units are B and KiB" + unitHint(token.text));
  advance();
  return true;
}

std::unique_ptr<ast::Expr> Parser::parseNumber() {
  auto expr = std::make_unique<ast::Expr>();
  SMLoc begin = here();
  bool isInteger = token.kind == Token::Integer;
  expr->kind = isInteger ? ast::Expr::Integer : ast::Expr::Decimal;
  expr->integer = token.integer;
  expr->decimal = token.decimal;
  advance();
  const bool hasUnit = token.kind == Token::Word && !atNewLine() && operatorHint().empty();
  if (hasUnit && !isInteger) {
    fail("'" + token.text + "' after a decimal; units B and KiB follow integers" + unitHint(token.text));
    return nullptr;
  }
  if (hasUnit && !applyUnit(expr->integer))
    return nullptr;
  expr->hasUnit = hasUnit;
  expr->range = rangeFrom(begin);
  return expr;
}

std::unique_ptr<ast::Expr> Parser::parseCall() {
  auto expr = std::make_unique<ast::Expr>();
  SMLoc begin = here();
  expr->kind = ast::Expr::Call;
  expr->name = token.text.str();
  advance();
  advance();
  if (!parseOperands(*expr, ")", "after the arguments"))
    return nullptr;
  expr->range = rangeFrom(begin);
  return expr;
}

std::unique_ptr<ast::Expr> Parser::parseRead() {
  auto expr = std::make_unique<ast::Expr>();
  SMLoc begin = here();
  expr->kind = ast::Expr::Read;
  expr->name = token.text.str();
  advance();
  advance();
  if (!parseOperands(*expr, "]", "after the indices"))
    return nullptr;
  expr->range = rangeFrom(begin);
  return expr;
}

bool Parser::parseOperands(ast::Expr &expr, StringRef end, StringRef where) {
  while (!token.is(end)) {
    expr.operands.push_back(parseExpr());
    if (!expr.operands.back())
      return false;
    if (!accept(","))
      break;
  }
  return expect(end, where);
}

} // namespace fagen
