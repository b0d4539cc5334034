// fagen: sums of products, parsed and computed in f64.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reference.h"

#include "lab/cases/problem.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <set>

namespace fagen::lab {

namespace {

class ReferenceParser {
public:
  ReferenceParser(const std::string &text, const ProgramPlan &plan) : text(text), plan(plan) {}

  std::vector<Statement> parse() {
    std::vector<Statement> statements;
    do {
      Statement statement;
      statement.result = result();
      expect('=');
      statement.function = function();
      do
        statement.factors.push_back(tensor());
      while (take('*'));
      if (statement.function)
        expect(')');
      requireIndices(statement);
      statements.push_back(std::move(statement));
    } while (take(';'));
    requireEnd();
    return statements;
  }

  Fill parseFill() {
    Fill fill;
    fill.buffer = result();
    const ProgramBuffer &buffer = bufferOf(fill.buffer.buffer);
    if (buffer.element != Element::U32 || buffer.isWritten)
      refuse(fmt::format("'{}' is not a buffer of u32 that the program only reads", fill.buffer.buffer));
    expect('=');
    fill.value = sum();
    forEachIndex(fill.value, [&](const std::string &name) {
      if (std::none_of(fill.buffer.places.begin(), fill.buffer.places.end(),
                       [&](const IndexExpr &place) { return place.name == name; }))
        refuse(fmt::format("'{}' is not an index of '{}'", name, fill.buffer.buffer));
    });
    requireEnd();
    return fill;
  }

private:
  [[noreturn]] void refuse(const std::string &why) const {
    throw UserError(fmt::format("'{}', character {}: {}", text, at + 1, why));
  }

  void requireEnd() const {
    if (at != text.size())
      refuse("expected '*', ';' or the end");
  }

  const ProgramBuffer &bufferOf(const std::string &name) const {
    const auto found = std::find_if(plan.buffers.begin(), plan.buffers.end(),
                                    [&](const ProgramBuffer &buffer) { return buffer.name == name; });
    if (found == plan.buffers.end())
      refuse(fmt::format("the program has no buffer '{}'", name));
    return *found;
  }

  void skipSpaces() {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])))
      ++at;
  }
  bool take(char wanted) {
    skipSpaces();
    if (at == text.size() || text[at] != wanted)
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

  /// "gelu(": a name that is not a buffer's, in front of a parenthesis.
  const Function *function() {
    const size_t begin = at;
    const std::string found = name();
    if (!take('(')) {
      at = begin;
      return nullptr;
    }
    const Function *const function = functionNamed(found);
    if (!function)
      refuse(fmt::format("no function is called '{}'; known: {}", found, functionNames()));
    return function;
  }

  IndexedTensor tensor() {
    IndexedTensor tensor;
    tensor.buffer = name();
    tensor.places = places(tensor.buffer);
    return tensor;
  }

  /// "[m, begin[b] + q]", behind the name of a buffer.
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

  IndexedTensor result() {
    IndexedTensor result = tensor();
    for (const IndexExpr &place : result.places)
      if (!place.isIndex())
        refuse(fmt::format("places of '{}' are indices, each a name", result.buffer));
    for (const IndexExpr &place : result.places)
      if (std::count_if(result.places.begin(), result.places.end(),
                        [&](const IndexExpr &other) { return other.name == place.name; }) > 1)
        refuse(fmt::format("the result has the index '{}' twice", place.name));
    return result;
  }

  /// Each makes the tree of its sum one deeper.
  char takeOperation() {
    if (++operations > kMostOperations)
      refuse(fmt::format("more than {} operations", kMostOperations));
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
    if (nesting == kMaxNesting)
      refuse("places are nested too deep");
    ++nesting;
    IndexExpr value;
    if (take('(')) {
      value = sum();
      expect(')');
    } else {
      value = word();
    }
    --nesting;
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
    skipSpaces();
    if (at < text.size() && text[at] == '[') {
      if (bufferOf(found).element != Element::U32)
        refuse(fmt::format("'{}' has no integers, so no place depends on them", found));
      return {IndexExpr::Element, 0, found, '+', places(found)};
    }
    return {IndexExpr::Index, 0, found, '+', {}};
  }

  /// Indices of the result, and those that places of factors calculate with, stand alone somewhere.
  void requireIndices(const Statement &statement) const {
    std::set<std::string> alone;
    for (const IndexedTensor &factor : statement.factors)
      for (const IndexExpr &place : factor.places)
        if (place.isIndex())
          alone.insert(place.name);
    std::set<std::string> used;
    for (const IndexedTensor &factor : statement.factors)
      for (const IndexExpr &place : factor.places)
        forEachIndex(place, [&](const std::string &name) { used.insert(name); });
    for (const IndexExpr &index : statement.result.places) {
      alone.insert(index.name);
      if (!used.count(index.name))
        refuse(fmt::format("no factor has the index '{}' of the result", index.name));
    }
    for (const std::string &name : used)
      if (!alone.count(name))
        refuse(fmt::format("nothing says how far the index '{}' goes: it stands nowhere alone", name));
  }

  static constexpr int kMaxNesting = 100, kMostOperations = 1000;
  const std::string &text;
  const ProgramPlan &plan;
  size_t at = 0;
  int nesting = 0, operations = 0;
};

/// Half a unit of the last place, relative.
double roundingOf(Element element) {
  switch (element) {
  case Element::F16:
    return std::ldexp(1.0, -11);
  case Element::BF16:
    return std::ldexp(1.0, -8);
  case Element::F32:
  case Element::U32:
    break;
  }
  return std::ldexp(1.0, -24);
}

/// Of what is stored below the smallest normal number, absolute.
double leastOf(Element element) { return element == Element::F16 ? std::ldexp(1.0, -25) : std::ldexp(1.0, -134); }

} // namespace

std::vector<Statement> parseReference(const std::string &text, const ProgramPlan &plan) {
  return ReferenceParser(text, plan).parse();
}

Fill parseFill(const std::string &text, const ProgramPlan &plan) { return ReferenceParser(text, plan).parseFill(); }

namespace {

int64_t elementAt(const IndexExpr &expr, const std::vector<int64_t> &at,
                  const std::map<std::string, TensorValues> &tensors) {
  const TensorValues &tensor = tensors.at(expr.name);
  int64_t offset = 0;
  for (size_t n = 0; n < at.size(); ++n) {
    if (at[n] < 0 || at[n] >= tensor.shape[n])
      throw UserError(fmt::format("'{}' has no element {} along dimension {}", expr.name, at[n], n));
    offset = offset * tensor.shape[n] + at[n];
  }
  return static_cast<int64_t>(tensor.values[static_cast<size_t>(offset)]);
}

int64_t calculate(char operation, int64_t a, int64_t b) {
  switch (operation) {
  case '+':
    return a + b;
  case '-':
    return a - b;
  case '*':
    return a * b;
  default:
    break;
  }
  if (b <= 0)
    throw UserError(fmt::format("a place is divided by {}", b));
  const int64_t quotient = a / b - (a % b < 0);
  return operation == '/' ? quotient : a - quotient * b;
}

} // namespace

int64_t evaluate(const IndexExpr &expr, const std::vector<std::string> &names, const std::vector<int64_t> &values,
                 const std::map<std::string, TensorValues> &tensors) {
  if (expr.kind == IndexExpr::Number)
    return expr.number;
  if (expr.kind == IndexExpr::Index)
    return values[std::find(names.begin(), names.end(), expr.name) - names.begin()];
  std::vector<int64_t> operands;
  for (const IndexExpr &operand : expr.operands)
    operands.push_back(evaluate(operand, names, values, tensors));
  return expr.kind == IndexExpr::Element ? elementAt(expr, operands, tensors)
                                         : calculate(expr.operation, operands[0], operands[1]);
}

Evaluator::Evaluator(const Statement &statement, const std::map<std::string, TensorValues> &tensors)
    : tensors(tensors), function(statement.function) {
  auto add = [&](const IndexedTensor &tensor) {
    const TensorValues &values = tensors.at(tensor.buffer);
    for (size_t n = 0; n < tensor.places.size(); ++n) {
      if (!tensor.places[n].isIndex())
        continue;
      const std::string &name = tensor.places[n].name;
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end()) {
        names.push_back(name);
        extents.push_back(values.shape[n]);
      } else if (extents[found - names.begin()] != values.shape[n]) {
        throw UserError(fmt::format("index '{}' goes to {} elsewhere and to {} in '{}'", name,
                                    extents[found - names.begin()], values.shape[n], tensor.buffer));
      }
    }
  };
  add(statement.result);
  kept = names.size();
  for (const IndexedTensor &factor : statement.factors)
    add(factor);
  for (const IndexedTensor &factor : statement.factors) {
    Factor &made = factors.emplace_back(
        Factor{&factor.buffer, &tensors.at(factor.buffer), std::vector<int64_t>(names.size()), {}});
    int64_t stride = 1;
    for (size_t n = factor.places.size(); n-- > 0; stride *= made.tensor->shape[n])
      if (factor.places[n].isIndex())
        made.strides[std::find(names.begin(), names.end(), factor.places[n].name) - names.begin()] += stride;
      else
        made.places.push_back({&factor.places[n], made.tensor->shape[n], stride});
  }
}

int64_t Evaluator::placeOf(const Factor &factor, const std::vector<int64_t> &index) const {
  int64_t place = 0;
  for (size_t n = 0; n < index.size(); ++n)
    place += index[n] * factor.strides[n];
  for (const Place &other : factor.places) {
    const int64_t at = evaluate(*other.expr, names, index, tensors);
    if (at < 0 || at >= other.extent)
      throw UserError(fmt::format("the reference reads element {} of {} of '{}'", at, other.extent, *factor.buffer));
    place += at * other.stride;
  }
  return place;
}

int64_t Evaluator::elements() const {
  int64_t count = 1;
  for (size_t n = 0; n < kept; ++n)
    count *= extents[n];
  return count;
}

ExpectedElement Evaluator::at(int64_t offset) const {
  std::vector<int64_t> index(extents.size());
  for (size_t n = kept; n-- > 0; offset /= extents[n])
    index[n] = offset % extents[n];
  ExpectedElement expected = sumAt(std::move(index));
  if (function) {
    expected.slope = function->slope;
    expected.ownError = function->ownError(expected.value);
    expected.value = function->value(expected.value);
  }
  return expected;
}

ExpectedElement Evaluator::sumAt(std::vector<int64_t> index) const {
  ExpectedElement expected;
  for (size_t n = kept; n < extents.size(); ++n)
    if (extents[n] == 0)
      return expected;
  while (true) {
    double term = 1;
    for (const Factor &factor : factors)
      term *= factor.tensor->values[static_cast<size_t>(placeOf(factor, index))];
    expected.value += term;
    expected.magnitude += std::abs(term);
    ++expected.terms;
    size_t n = extents.size();
    while (n > kept && ++index[n - 1] == extents[n - 1])
      index[--n] = 0;
    if (n == kept)
      return expected;
  }
}

double allowedError(const ExpectedElement &expected, Element element) {
  const double sums = std::ldexp(double(expected.terms), -23) * expected.magnitude;
  const double computed = expected.slope * sums + expected.ownError;
  return computed + roundingOf(element) * (std::abs(expected.value) + computed) + leastOf(element);
}

} // namespace fagen::lab
