// fagen: references, computed in f64.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reference.h"

#include "lab/cases/problem.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace fagen::lab {

namespace {

/// Of f32: twice half a unit of the last place, for operations that are approximated or cut off.
constexpr double kUnit = 0x1p-23;

/// wgmma adds 32 products of bytes to a sum at once, all of them and the sum cut off this far below the largest, and
/// gives as many bits (docs/internals/Arithmetic.md).
constexpr int64_t kByteDepth = 32;
constexpr double kByteUnit = 0x1p-13;

/// In the place of an extent, of an index that no tensor ends.
constexpr int64_t kBounded = -1;

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

// Indices.

Evaluator::Evaluator(const Statement &statement, const std::map<std::string, TensorValues> &tensors, const Sizes &sizes)
    : statement(statement), tensors(tensors) {
  addExtents(statement.result);
  addExtents(statement.value);
  addNames(statement.value, sizes);
  const TensorValues &result = tensors.at(statement.result.buffer);
  int64_t stride = 1;
  for (size_t n = statement.result.places.size(); n-- > 0; stride *= result.shape[n]) {
    const IndexExpr &place = statement.result.places[n];
    if (place.isIndex()) {
      kept.insert(kept.begin(), {std::find(names.begin(), names.end(), place.name) - names.begin(), stride});
      continue;
    }
    if (place.number >= result.shape[n])
      throw UserError(
          fmt::format("'{}' has no element {} along dimension {}", statement.result.buffer, place.number, n));
    first += place.number * stride;
  }
  root = nodeOf(statement.value, false);
}

void Evaluator::addExtents(const IndexedTensor &tensor) {
  const TensorValues &given = tensors.at(tensor.buffer);
  for (size_t n = 0; n < tensor.places.size(); ++n) {
    if (!tensor.places[n].isIndex())
      continue;
    const std::string &name = tensor.places[n].name;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      names.push_back(name);
      extents.push_back(given.shape[n]);
      values.push_back(0);
    } else if (const int64_t known = extents[found - names.begin()]; known != kBounded && known != given.shape[n]) {
      throw UserError(fmt::format(
          "index '{0}' goes to {1} elsewhere and to {2} in '{3}'; where it is to go no further, write {0} + 0", name,
          known, given.shape[n], tensor.buffer));
    }
  }
}

/// An index with a bound of its own ends there, wherever tensors do.
void Evaluator::addExtents(const ValueExpr &expr) {
  if (expr.kind == ValueExpr::Element)
    return addExtents(expr.element);
  if ((expr.kind == ValueExpr::Sum || expr.kind == ValueExpr::Max) && expr.operands.size() > 1) {
    names.push_back(expr.name);
    extents.push_back(kBounded);
    values.push_back(0);
  }
  for (const ValueExpr &operand : expr.operands)
    addExtents(operand);
}

/// Names that are no index are sizes.
void Evaluator::addNames(const ValueExpr &expr, const Sizes &sizes) {
  auto add = [&](const std::string &name) {
    if (std::find(names.begin(), names.end(), name) != names.end())
      return;
    const auto size = sizes.find(name);
    names.push_back(name);
    extents.push_back(kBounded);
    values.push_back(size == sizes.end() ? 0 : size->second);
  };
  if (expr.kind == ValueExpr::Index || expr.kind == ValueExpr::Sum || expr.kind == ValueExpr::Max)
    add(expr.name);
  for (const IndexExpr &place : expr.element.places)
    forEachIndex(place, add);
  for (const ValueExpr &operand : expr.operands)
    addNames(operand, sizes);
}

Evaluator::Node Evaluator::nodeOf(const ValueExpr &expr, bool isUnderSum) const {
  Node node;
  node.expr = &expr;
  const bool isProduct = expr.kind == ValueExpr::Operation && expr.operation == ValueOperation::Mul;
  const bool isSum = expr.kind == ValueExpr::Sum;
  for (const ValueExpr &operand : expr.operands)
    node.operands.push_back(nodeOf(operand, isSum || (isProduct && isUnderSum)));
  auto isExact = [](const Node &operand) { return operand.expr->kind == ValueExpr::Element || operand.isTerm; };
  node.isTerm = isUnderSum && isProduct && isExact(node.operands[0]) && isExact(node.operands[1]);
  auto isByte = [](const Node &operand) { return operand.tensor && operand.tensor->element == Element::E4M3; };
  node.isOfBytes = isUnderSum && isProduct && isByte(node.operands[0]) && isByte(node.operands[1]);
  auto isWhole = [](const Node &operand) { return operand.isWhole; };
  node.isWhole = expr.kind == ValueExpr::Index || (expr.kind == ValueExpr::Number && expr.isWhole) ||
                 (expr.kind == ValueExpr::Operation && expr.operation != ValueOperation::Div &&
                  std::all_of(node.operands.begin(), node.operands.end(), isWhole));
  if (expr.kind == ValueExpr::Index || isSum || expr.kind == ValueExpr::Max) {
    node.index = std::find(names.begin(), names.end(), expr.name) - names.begin();
    node.extent = extents[node.index];
  }
  if (expr.kind != ValueExpr::Element)
    return node;
  node.tensor = &tensors.at(expr.element.buffer);
  int64_t stride = 1;
  for (size_t n = expr.element.places.size(); n-- > 0; stride *= node.tensor->shape[n]) {
    const IndexExpr &place = expr.element.places[n];
    const size_t index = std::find(names.begin(), names.end(), place.name) - names.begin();
    if (place.isIndex() && extents[index] == node.tensor->shape[n])
      node.strides.push_back({index, stride});
    else
      node.places.push_back({&place, node.tensor->shape[n], stride});
  }
  return node;
}

int64_t Evaluator::elements() const {
  int64_t count = 1;
  for (const auto &[index, stride] : kept)
    count *= extents[index];
  return count;
}

std::vector<int64_t> Evaluator::indexOf(int64_t n) const {
  std::vector<int64_t> index = values;
  for (size_t i = kept.size(); i-- > 0; n /= extents[kept[i].first])
    index[kept[i].first] = n % extents[kept[i].first];
  return index;
}

int64_t Evaluator::placeOf(int64_t n) const {
  const std::vector<int64_t> index = indexOf(n);
  int64_t place = first;
  for (const auto &[of, stride] : kept)
    place += index[of] * stride;
  return place;
}

// Values.

ExpectedElement Evaluator::at(int64_t n) const {
  std::vector<int64_t> index = indexOf(n);
  return valueOf(root, index);
}

ExpectedElement Evaluator::valueOf(const Node &node, std::vector<int64_t> &index) const {
  switch (node.expr->kind) {
  case ValueExpr::Number: // as f32 where it is no integer
    return {node.expr->number, node.isWhole ? 0 : 0x1p-24 * std::abs(node.expr->number)};
  case ValueExpr::Index:
    return {static_cast<double>(index[node.index]), 0};
  case ValueExpr::Element:
    return elementOf(node, index);
  case ValueExpr::Apply: {
    const ExpectedElement of = valueOf(node.operands[0], index);
    return {node.expr->function->value(of.value), node.expr->function->error(of.value, of.error)};
  }
  case ValueExpr::Operation:
    return operated(node, index);
  case ValueExpr::Sum:
  case ValueExpr::Max:
    break;
  }
  return reduced(node, index);
}

ExpectedElement Evaluator::elementOf(const Node &node, const std::vector<int64_t> &index) const {
  int64_t place = 0;
  for (const auto &[of, stride] : node.strides)
    place += index[of] * stride;
  for (const Place &other : node.places) {
    const int64_t at = evaluate(*other.expr, names, index, tensors);
    if (at < 0 || at >= other.extent)
      throw UserError(
          fmt::format("the reference reads element {} of {} of '{}'", at, other.extent, node.expr->element.buffer));
    place += at * other.stride;
  }
  return {node.tensor->values[static_cast<size_t>(place)], 0};
}

/// Of products of bytes, in the order of the index.
ExpectedElement Evaluator::summedOfBytes(const Node &node, std::vector<int64_t> &index, int64_t end) const {
  ExpectedElement all{0, 0};
  for (int64_t at = 0; at < end;) {
    double largest = std::abs(all.value) + all.error;
    for (const int64_t stop = std::min(end, at + kByteDepth); at < stop; ++at) {
      index[node.index] = at;
      const double term = valueOf(node.operands[0], index).value;
      all.value += term;
      largest = std::max(largest, std::abs(term));
    }
    all.error += kByteUnit * ((kByteDepth + 1) * largest + std::abs(all.value));
  }
  index[node.index] = 0;
  return all;
}

ExpectedElement Evaluator::reduced(const Node &node, std::vector<int64_t> &index) const {
  const bool isSum = node.expr->kind == ValueExpr::Sum;
  const int64_t end =
      node.operands.size() > 1 ? static_cast<int64_t>(valueOf(node.operands[1], index).value) : node.extent;
  if (isSum && node.operands[0].isOfBytes)
    return summedOfBytes(node, index, end);
  ExpectedElement all{isSum ? 0 : -std::numeric_limits<double>::infinity(), 0};
  double magnitude = 0;
  for (int64_t at = 0; at < end; ++at) {
    index[node.index] = at;
    const ExpectedElement term = valueOf(node.operands[0], index);
    if (isSum) {
      all.value += term.value;
      all.error += term.error;
      magnitude += std::abs(term.value);
    } else {
      all = {std::max(all.value, term.value), std::max(all.error, term.error)};
    }
  }
  index[node.index] = 0;
  all.error += static_cast<double>(std::max<int64_t>(end, 0)) * kUnit * magnitude;
  return all;
}

/// Of whole numbers, too.
static double applied(ValueOperation operation, double a, double b) {
  switch (operation) {
  case ValueOperation::Add:
    return a + b;
  case ValueOperation::Sub:
    return a - b;
  case ValueOperation::Mul:
    return a * b;
  case ValueOperation::Div:
    return a / b;
  case ValueOperation::Mod:
    return std::fmod(a, b);
  case ValueOperation::FloorDiv:
    return std::floor(a / b);
  case ValueOperation::CeilDiv:
    return std::ceil(a / b);
  case ValueOperation::Min:
    return std::min(a, b);
  case ValueOperation::Max:
    return std::max(a, b);
  case ValueOperation::Lt:
    return a < b;
  case ValueOperation::Le:
    return a <= b;
  case ValueOperation::Gt:
    return a > b;
  case ValueOperation::Ge:
    return a >= b;
  case ValueOperation::Eq:
    return a == b;
  case ValueOperation::Ne:
    return a != b;
  case ValueOperation::And:
    return a != 0 && b != 0;
  case ValueOperation::Or:
    return a != 0 || b != 0;
  case ValueOperation::Not:
    return a == 0;
  case ValueOperation::Select:
    break;
  }
  return 0;
}

ExpectedElement Evaluator::operated(const Node &node, std::vector<int64_t> &index) const {
  const ValueOperation operation = node.expr->operation;
  const ExpectedElement a = valueOf(node.operands[0], index);
  if (operation == ValueOperation::Select)
    return valueOf(node.operands[a.value != 0 ? 1 : 2], index);
  if ((operation == ValueOperation::And && a.value == 0) || (operation == ValueOperation::Or && a.value != 0))
    return {operation == ValueOperation::Or ? 1.0 : 0.0, 0};
  const ExpectedElement b = operation == ValueOperation::Not ? a : valueOf(node.operands[1], index);
  const double value = applied(operation, a.value, b.value);
  if (node.isWhole || node.isTerm || std::isinf(value))
    return {value, 0};
  switch (operation) {
  case ValueOperation::Add:
  case ValueOperation::Sub: // of what cancels each has been rounded
    return {value, a.error + b.error + kUnit * (std::abs(a.value) + std::abs(b.value))};
  case ValueOperation::Mul:
    return {value,
            std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error + kUnit * std::abs(value)};
  case ValueOperation::Div: {
    const double least = std::abs(b.value) - b.error;
    return {value, 2 * kUnit * std::abs(value) + (a.error + b.error == 0 ? 0
                                                  : least > 0            ? (a.error + std::abs(value) * b.error) / least
                                                                         : std::numeric_limits<double>::infinity())};
  }
  case ValueOperation::Min:
  case ValueOperation::Max:
    return {value, std::max(a.error, b.error)};
  default:
    return {value, 0};
  }
}

double allowedError(const ExpectedElement &expected, Element element) {
  return expected.error + infoOf(element).rounding * (std::abs(expected.value) + expected.error) +
         infoOf(element).least;
}

} // namespace fagen::lab
