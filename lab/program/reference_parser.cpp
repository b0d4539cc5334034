// fagen: references from text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A value has the operators of the IR's expressions, with C's precedence, and sums: sum[k](...), sum[k < n](...), and
// max likewise. A place is made of integers.
#include "reference.h"

#include "lab/cases/problem.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <optional>
#include <set>

namespace fagen::lab {

namespace {

struct Operator {
  const char *text;
  ValueOperation operation;
  int precedence;
};

/// Longer spellings before their prefixes.
constexpr Operator kOperators[] = {
    {"||", ValueOperation::Or, 1}, {"&&", ValueOperation::And, 2}, {"==", ValueOperation::Eq, 3},
    {"!=", ValueOperation::Ne, 3}, {"<=", ValueOperation::Le, 4},  {">=", ValueOperation::Ge, 4},
    {"<", ValueOperation::Lt, 4},  {">", ValueOperation::Gt, 4},   {"+", ValueOperation::Add, 5},
    {"-", ValueOperation::Sub, 5}, {"*", ValueOperation::Mul, 6},  {"/", ValueOperation::Div, 6},
    {"%", ValueOperation::Mod, 6},
};
/// Spelled as calls of two operands.
struct Call {
  const char *name;
  ValueOperation operation;
};
constexpr Call kCalls[] = {{"min", ValueOperation::Min},
                           {"max", ValueOperation::Max},
                           {"floor_div", ValueOperation::FloorDiv},
                           {"ceil_div", ValueOperation::CeilDiv}};

ValueExpr operation(ValueOperation operation, std::vector<ValueExpr> operands) {
  ValueExpr value{.kind = ValueExpr::Operation, .operation = operation};
  value.operands = std::move(operands);
  return value;
}

void forEachTensor(const ValueExpr &expr, const std::function<void(const IndexedTensor &)> &visit) {
  if (expr.kind == ValueExpr::Element)
    visit(expr.element);
  for (const ValueExpr &operand : expr.operands)
    forEachTensor(operand, visit);
}

void forEachName(const ValueExpr &expr, const std::function<void(const std::string &)> &visit) {
  if (expr.kind == ValueExpr::Index)
    visit(expr.name);
  for (const IndexExpr &place : expr.element.places)
    forEachIndex(place, visit);
  for (const ValueExpr &operand : expr.operands)
    forEachName(operand, visit);
}

class ReferenceParser {
public:
  ReferenceParser(const std::string &text, const ProgramPlan &plan) : text(text), plan(plan), sizes(plan.sizeNames()) {}

  std::vector<Statement> parse() {
    std::vector<Statement> statements;
    do {
      bound.clear();
      hasBound.clear();
      Statement statement;
      statement.result = result(/*mayBeNumbers=*/true);
      expect('=');
      statement.value = value();
      addSums(statement);
      statements.push_back(std::move(statement));
    } while (take(';'));
    requireEnd("expected an operator, ';' or the end");
    return statements;
  }

  Fill parseFill() {
    Fill fill;
    fill.buffer = result(/*mayBeNumbers=*/false);
    const ProgramBuffer &buffer = bufferOf(fill.buffer.buffer);
    if (buffer.isWritten)
      refuse(fmt::format("'{}' is not a buffer that the program only reads", fill.buffer.buffer));
    expect('=');
    fill.value = sum();
    forEachIndex(fill.value, [&](const std::string &name) {
      if (std::none_of(fill.buffer.places.begin(), fill.buffer.places.end(),
                       [&](const IndexExpr &place) { return place.name == name; }))
        refuse(fmt::format("'{}' is not an index of '{}'", name, fill.buffer.buffer));
    });
    requireEnd("expected an operator or the end");
    return fill;
  }

private:
  [[noreturn]] void refuse(const std::string &why) const {
    throw UserError(fmt::format("'{}', character {}: {}", text, at + 1, why));
  }

  void requireEnd(const char *what) {
    skipSpaces();
    if (at != text.size())
      refuse(what);
  }

  const ProgramBuffer *findBuffer(const std::string &name) const {
    const auto found = std::find_if(plan.buffers.begin(), plan.buffers.end(),
                                    [&](const ProgramBuffer &buffer) { return buffer.name == name; });
    return found == plan.buffers.end() ? nullptr : &*found;
  }
  const ProgramBuffer &bufferOf(const std::string &name) const {
    const ProgramBuffer *const buffer = findBuffer(name);
    if (!buffer)
      refuse(fmt::format("the program has no buffer '{}'", name));
    return *buffer;
  }

  // Words.

  void skipSpaces() {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])))
      ++at;
  }
  bool atCharacter(char wanted) {
    skipSpaces();
    return at < text.size() && text[at] == wanted;
  }
  bool take(char wanted) {
    if (!atCharacter(wanted))
      return false;
    ++at;
    skipSpaces();
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted))
      refuse(fmt::format("expected '{}'", wanted));
  }
  std::string name() {
    skipSpaces();
    const size_t begin = at;
    while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_'))
      ++at;
    if (at == begin)
      refuse("expected a name");
    return text.substr(begin, at - begin);
  }
  bool atDigit() {
    skipSpaces();
    return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]));
  }

  struct Nested {
    explicit Nested(ReferenceParser &parser) : parser(parser) {
      if (parser.nesting == kMaxNesting)
        parser.refuse("it is nested too deep");
      ++parser.nesting;
    }
    ~Nested() { --parser.nesting; }
    ReferenceParser &parser;
  };

  /// Each makes a tree one deeper.
  void countOperation() {
    if (++operations > kMostOperations)
      refuse(fmt::format("more than {} operations", kMostOperations));
  }

  // Values.

  /// A choice, or what binds more.
  ValueExpr value() {
    const Nested nested(*this);
    ValueExpr condition = operators(1);
    if (!take('?'))
      return condition;
    countOperation();
    ValueExpr whenTrue = value();
    expect(':');
    ValueExpr whenFalse = value();
    return operation(ValueOperation::Select, {std::move(condition), std::move(whenTrue), std::move(whenFalse)});
  }

  const Operator *peekOperator() {
    skipSpaces();
    for (const Operator &each : kOperators)
      if (text.compare(at, std::char_traits<char>::length(each.text), each.text) == 0)
        return &each;
    return nullptr;
  }

  ValueExpr operators(int precedence) {
    ValueExpr left = unary();
    for (const Operator *found = peekOperator(); found && found->precedence >= precedence; found = peekOperator()) {
      countOperation();
      at += std::char_traits<char>::length(found->text);
      ValueExpr right = operators(found->precedence + 1);
      left = operation(found->operation, {std::move(left), std::move(right)});
    }
    return left;
  }

  ValueExpr unary() {
    const Nested nested(*this);
    if (take('!'))
      return operation(ValueOperation::Not, {unary()});
    if (take('-')) {
      ValueExpr zero{.isWhole = true};
      return operation(ValueOperation::Sub, {std::move(zero), unary()});
    }
    if (take('(')) {
      ValueExpr inner = value();
      expect(')');
      return inner;
    }
    return atDigit() ? number() : named();
  }

  ValueExpr number() {
    const char *const begin = text.c_str() + at;
    char *end = nullptr;
    ValueExpr value{.number = std::strtod(begin, &end)};
    value.isWhole = std::none_of(static_cast<const char *>(begin), static_cast<const char *>(end),
                                 [](char c) { return !std::isdigit(static_cast<unsigned char>(c)); });
    at += static_cast<size_t>(end - begin);
    return value;
  }

  /// An element, an index, a size, a function, a sum.
  ValueExpr named() {
    const std::string found = name();
    const bool isOver = (found == "sum" || found == "max") && atCharacter('[') && !findBuffer(found);
    if (isOver)
      return over(found == "sum" ? ValueExpr::Sum : ValueExpr::Max);
    if (atCharacter('[')) {
      ValueExpr element{.kind = ValueExpr::Element};
      element.element.buffer = found;
      element.element.places = places(found);
      return element;
    }
    if (take('('))
      return call(found);
    if (found == "inf")
      return {.number = std::numeric_limits<double>::infinity()};
    return {.kind = ValueExpr::Index, .name = found};
  }

  /// [k](...), [k < n](...)
  ValueExpr over(ValueExpr::Kind kind) {
    ValueExpr reduction{.kind = kind};
    expect('[');
    reduction.name = name();
    std::optional<ValueExpr> end;
    if (take('<'))
      end = operators(kBeyondComparisons);
    expect(']');
    if (!bound.insert(reduction.name).second)
      refuse(fmt::format("there are two sums over '{}'; give one another index", reduction.name));
    expect('(');
    reduction.operands.push_back(value());
    expect(')');
    if (end) {
      hasBound.insert(reduction.name);
      reduction.operands.push_back(std::move(*end));
    }
    return reduction;
  }

  ValueExpr call(const std::string &found) {
    ValueExpr first = value();
    for (const Call &each : kCalls)
      if (each.name == found) {
        expect(',');
        ValueExpr second = value();
        expect(')');
        return operation(each.operation, {std::move(first), std::move(second)});
      }
    const Function *const function = functionNamed(found);
    if (!function)
      refuse(
          fmt::format("no function is called '{}'; known: {}, min, max, floor_div, ceil_div", found, functionNames()));
    expect(')');
    ValueExpr applied{.kind = ValueExpr::Apply, .function = function};
    applied.operands.push_back(std::move(first));
    return applied;
  }

  // Places.

  /// "[m, begin[b] + q]", after the name of a buffer.
  std::vector<IndexExpr> places(const std::string &buffer) {
    const size_t dimensions = bufferOf(buffer).shape.size();
    std::vector<IndexExpr> places;
    expect('[');
    do
      places.push_back(sum());
    while (take(','));
    expect(']');
    if (places.size() != dimensions)
      refuse(fmt::format("'{}' has {} dimensions, not {}", buffer, dimensions, places.size()));
    return places;
  }

  IndexedTensor result(bool mayBeNumbers) {
    IndexedTensor result;
    result.buffer = name();
    result.places = places(result.buffer);
    for (const IndexExpr &place : result.places)
      if (!place.isIndex() && !(mayBeNumbers && place.kind == IndexExpr::Number))
        refuse(fmt::format("places of '{}' are indices, each a name{}", result.buffer,
                           mayBeNumbers ? ", or numbers" : ""));
    for (const IndexExpr &place : result.places)
      if (place.isIndex() && std::count_if(result.places.begin(), result.places.end(),
                                           [&](const IndexExpr &other) { return other.name == place.name; }) > 1)
        refuse(fmt::format("the result has the index '{}' twice", place.name));
    return result;
  }

  char takeOperation() {
    countOperation();
    const char operation = text[at];
    take(operation);
    return operation;
  }

  IndexExpr sum() {
    IndexExpr value = product();
    while (at < text.size() && (text[at] == '+' || text[at] == '-')) {
      const char operation = takeOperation();
      value = {IndexExpr::Operation, 0, "", operation, {std::move(value), product()}};
    }
    return value;
  }

  IndexExpr product() {
    IndexExpr value = place();
    while (at < text.size() && (text[at] == '*' || text[at] == '/' || text[at] == '%')) {
      const char operation = takeOperation();
      value = {IndexExpr::Operation, 0, "", operation, {std::move(value), place()}};
    }
    return value;
  }

  /// A number, an index, an element, or a sum in parentheses.
  IndexExpr place() {
    const Nested nested(*this);
    IndexExpr value;
    if (take('(')) {
      value = sum();
      expect(')');
    } else {
      value = word();
    }
    skipSpaces();
    return value;
  }

  IndexExpr word() {
    const std::string found = name();
    if (std::isdigit(static_cast<unsigned char>(found.front()))) {
      IndexExpr number;
      const char *const end = found.data() + found.size();
      if (std::from_chars(found.data(), end, number.number) != std::from_chars_result{end, std::errc()})
        refuse(fmt::format("'{}' is not a number", found));
      return number;
    }
    if (atCharacter('[')) {
      if (!isInteger(bufferOf(found).element))
        refuse(fmt::format("'{}' has no integers, so no place depends on them", found));
      return {IndexExpr::Element, 0, found, '+', places(found)};
    }
    return {IndexExpr::Index, 0, found, '+', {}};
  }

  // Indices.

  /// Over what the result lacks. Indices of the result, and those that places calculate with, stand alone somewhere.
  void addSums(Statement &statement) {
    std::set<std::string> alone, used;
    std::vector<std::string> inOrder;
    auto lookAt = [&](const IndexedTensor &tensor) {
      for (const IndexExpr &place : tensor.places)
        if (place.isIndex())
          alone.insert(place.name);
    };
    forEachTensor(statement.value, lookAt);
    forEachName(statement.value, [&](const std::string &name) {
      if (used.insert(name).second)
        inOrder.push_back(name);
    });
    std::set<std::string> ofResult;
    for (const IndexExpr &place : statement.result.places)
      if (place.isIndex()) {
        ofResult.insert(place.name);
        if (!used.count(place.name))
          refuse(fmt::format("no factor has the index '{}' of the result", place.name));
        if (bound.count(place.name))
          refuse(fmt::format("a sum is over the index '{}' of the result", place.name));
      }
    for (const std::string &name : inOrder) {
      const bool isAlone = alone.count(name) || ofResult.count(name) || hasBound.count(name);
      const bool isSize = !isAlone && !bound.count(name) && std::count(sizes.begin(), sizes.end(), name);
      if (!isAlone && !isSize)
        refuse(fmt::format("nothing says how far the index '{}' goes: it stands nowhere alone", name));
      if (!isSize && !ofResult.count(name) && !bound.count(name))
        sumOver(statement.value, name);
    }
  }

  static constexpr int kMaxNesting = 100, kMostOperations = 1000;
  static constexpr int kBeyondComparisons = 5; ///< the precedence of + and -
  const std::string &text;
  const ProgramPlan &plan;
  const std::vector<std::string> sizes;
  std::set<std::string> bound, hasBound; ///< indices that sums of the statement are over; and end where these say
  size_t at = 0;
  int nesting = 0, operations = 0;
};

} // namespace

std::vector<Statement> parseReference(const std::string &text, const ProgramPlan &plan) {
  return ReferenceParser(text, plan).parse();
}

Fill parseFill(const std::string &text, const ProgramPlan &plan) { return ReferenceParser(text, plan).parseFill(); }

} // namespace fagen::lab
