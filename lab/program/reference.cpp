// fagen: sums of products, parsed and computed in f64.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reference.h"

#include "lab/cases/problem.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/format.h>

namespace fagen::lab {

namespace {

class ReferenceParser {
public:
  ReferenceParser(const std::string &text, const ProgramPlan &plan) : text(text), plan(plan) {}

  std::vector<Statement> parse() {
    std::vector<Statement> statements;
    do {
      Statement statement;
      statement.result = tensor();
      expect('=');
      do
        statement.factors.push_back(tensor());
      while (take('*'));
      requireIndices(statement);
      statements.push_back(std::move(statement));
    } while (take(';'));
    if (at != text.size())
      refuse("expected '*', ';' or the end");
    return statements;
  }

private:
  [[noreturn]] void refuse(const std::string &why) const {
    throw UserError(fmt::format("reference '{}', character {}: {}", text, at + 1, why));
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

  IndexedTensor tensor() {
    IndexedTensor tensor;
    tensor.buffer = name();
    const auto found = std::find_if(plan.buffers.begin(), plan.buffers.end(),
                                    [&](const ProgramBuffer &buffer) { return buffer.name == tensor.buffer; });
    if (found == plan.buffers.end())
      refuse(fmt::format("the program has no buffer '{}'", tensor.buffer));
    expect('[');
    do
      tensor.indices.push_back(name());
    while (take(','));
    expect(']');
    if (tensor.indices.size() != found->shape.size())
      refuse(fmt::format("'{}' has {} dimensions, not {}", tensor.buffer, found->shape.size(), tensor.indices.size()));
    return tensor;
  }

  void requireIndices(const Statement &statement) const {
    for (const std::string &index : statement.result.indices) {
      const bool isKnown = std::any_of(statement.factors.begin(), statement.factors.end(), [&](const auto &factor) {
        return std::find(factor.indices.begin(), factor.indices.end(), index) != factor.indices.end();
      });
      if (!isKnown)
        refuse(fmt::format("no factor has the index '{}' of the result", index));
      if (std::count(statement.result.indices.begin(), statement.result.indices.end(), index) > 1)
        refuse(fmt::format("the result has the index '{}' twice", index));
    }
  }

  const std::string &text;
  const ProgramPlan &plan;
  size_t at = 0;
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

Evaluator::Evaluator(const Statement &statement, const std::map<std::string, TensorValues> &tensors) {
  std::vector<std::string> names;
  auto add = [&](const IndexedTensor &tensor) {
    const TensorValues &values = tensors.at(tensor.buffer);
    for (size_t n = 0; n < tensor.indices.size(); ++n) {
      const auto found = std::find(names.begin(), names.end(), tensor.indices[n]);
      if (found == names.end()) {
        names.push_back(tensor.indices[n]);
        extents.push_back(values.shape[n]);
      } else if (extents[found - names.begin()] != values.shape[n]) {
        throw UserError(fmt::format("index '{}' goes to {} elsewhere and to {} in '{}'", tensor.indices[n],
                                    extents[found - names.begin()], values.shape[n], tensor.buffer));
      }
    }
  };
  add(statement.result);
  kept = names.size();
  for (const IndexedTensor &factor : statement.factors)
    add(factor);
  for (const IndexedTensor &factor : statement.factors) {
    Factor &made = factors.emplace_back(Factor{&tensors.at(factor.buffer), std::vector<int64_t>(names.size())});
    int64_t stride = 1;
    for (size_t n = factor.indices.size(); n-- > 0; stride *= made.tensor->shape[n])
      made.strides[std::find(names.begin(), names.end(), factor.indices[n]) - names.begin()] += stride;
  }
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
  ExpectedElement expected;
  for (size_t n = kept; n < extents.size(); ++n)
    if (extents[n] == 0)
      return expected;
  while (true) {
    double term = 1;
    for (const Factor &factor : factors) {
      int64_t place = 0;
      for (size_t n = 0; n < index.size(); ++n)
        place += index[n] * factor.strides[n];
      term *= factor.tensor->values[static_cast<size_t>(place)];
    }
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
  return sums + roundingOf(element) * (std::abs(expected.value) + sums) + leastOf(element);
}

} // namespace fagen::lab
