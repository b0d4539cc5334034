// fagen: forms in f64, by interpreting their programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "form.h"

#include "lab/support/user_error.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <limits>
#include <sstream>
#include <stdexcept>

namespace fagen::lab {

using Stack = std::vector<double>;

static int64_t integer(double value) { return static_cast<int64_t>(value); }

static int64_t floorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/// Towards zero; NaN is 0, and what 32 bits do not hold their end.
static double truncated(double x) {
  if (std::isnan(x))
    return 0;
  return std::trunc(
      std::clamp(x, double(std::numeric_limits<int32_t>::min()), double(std::numeric_limits<int32_t>::max())));
}

static const std::map<std::string, double (*)(double)> &unaryOperators() {
  static const std::map<std::string, double (*)(double)> table = {
      {"neg", [](double a) { return -a; }},
      {"!", [](double a) { return double(a == 0); }},
      {"abs", [](double a) { return std::abs(a); }},
      {"f32", [](double a) { return a; }},
      {"i32", truncated},
      {"exp", [](double a) { return std::exp(a); }},
      {"exp2", [](double a) { return std::exp2(a); }},
      {"log", [](double a) { return std::log(a); }},
      {"log2", [](double a) { return std::log2(a); }},
      {"sqrt", [](double a) { return std::sqrt(a); }},
      {"tanh", [](double a) { return std::tanh(a); }},
  };
  return table;
}

static const std::map<std::string, double (*)(double, double)> &binaryOperators() {
  static const std::map<std::string, double (*)(double, double)> table = {
      {"+", [](double a, double b) { return a + b; }},
      {"-", [](double a, double b) { return a - b; }},
      {"*", [](double a, double b) { return a * b; }},
      {"/", [](double a, double b) { return a / b; }},
      {"floor_div", [](double a, double b) { return double(floorDiv(integer(a), integer(b))); }},
      {"floor_mod", [](double a, double b) { return a - b * double(floorDiv(integer(a), integer(b))); }},
      {"min", [](double a, double b) { return std::fmin(a, b); }},
      {"max", [](double a, double b) { return std::fmax(a, b); }},
      {"&", [](double a, double b) { return double(integer(a) & integer(b)); }},
      {"|", [](double a, double b) { return double(integer(a) | integer(b)); }},
      {"^", [](double a, double b) { return double(integer(a) ^ integer(b)); }},
      {"<<", [](double a, double b) { return a * std::exp2(b); }},
      {">>", [](double a, double b) { return std::floor(a / std::exp2(b)); }},
      {"<", [](double a, double b) { return double(a < b); }},
      {"<=", [](double a, double b) { return double(a <= b); }},
      {">", [](double a, double b) { return double(a > b); }},
      {">=", [](double a, double b) { return double(a >= b); }},
      {"==", [](double a, double b) { return double(a == b); }},
      {"!=", [](double a, double b) { return double(a != b); }},
      {"&&", [](double a, double b) { return double(a != 0 && b != 0); }},
      {"||", [](double a, double b) { return double(a != 0 || b != 0); }},
  };
  return table;
}

/// Numbers of an element, by the name that a form has for them.
static double placeOf(const std::string &name, const Shape &shape, const FormElement &element) {
  const std::pair<const char *, double> places[] = {
      {"s", element.score},
      {"b", double(element.batch)},
      {"h", double(element.head)},
      {"hk", double(element.head / std::max<int64_t>(shape.heads / shape.kvHeads, 1))},
      {"q", double(element.query)},
      {"k", double(element.key)},
      {"p", double(element.query + shape.seqKv - shape.seqQ)},
      {"batch", double(shape.batch)},
      {"heads", double(shape.heads)},
      {"kv_heads", double(shape.kvHeads)},
      {"seq_q", double(shape.seqQ)},
      {"seq_kv", double(shape.seqKv)},
  };
  for (const auto &[known, value] : places)
    if (name == known)
      return value;
  throw UserError(fmt::format("unknown place '@{}' in a form's program", name));
}

static const auto &argument(const auto &arguments, const std::string &name) {
  const auto found = arguments.find(name);
  if (found == arguments.end())
    throw UserError(fmt::format("the form's param '{}' is not given", name));
  return found->second;
}

/// Indices outside are taken as the nearest inside; an empty tensor reads as 0.
static double read(const FormTensor &tensor, const double *indices) {
  int64_t at = 0;
  for (const int64_t extent : tensor.extents) {
    if (extent == 0)
      return 0;
    at = at * extent + std::clamp<int64_t>(integer(*indices++), 0, extent - 1);
  }
  return tensor.values.at(size_t(at));
}

/// One element.
struct FormProgram::Run {
  const Shape &shape;
  const FormArguments &arguments;
  const FormElement &element;
  std::map<std::string, double> lets = {};

  Run &withLets(const FormProgram &form) {
    for (const auto &[name, program] : form.lets)
      lets[name] = evaluate(program);
    return *this;
  }

  double evaluate(const Program &program) const {
    Stack stack;
    for (const Word &word : program) {
      const double result = apply(word, stack.data() + (stack.size() - word.operands));
      stack.resize(stack.size() - word.operands);
      stack.push_back(result);
    }
    return stack.back();
  }

  double apply(const Word &word, const double *operands) const {
    switch (word.kind) {
    case Word::Number:
      return word.number;
    case Word::Place:
      return placeOf(word.name, shape, element);
    case Word::Param:
      return argument(arguments.numbers, word.name);
    case Word::Let:
      return argument(lets, word.name);
    case Word::Read: {
      const FormTensor &tensor = argument(arguments.tensors, word.name);
      if (tensor.extents.size() != word.operands)
        throw UserError(fmt::format("the form's tensor '{}' has {} extents, not {}", word.name, word.operands,
                                    tensor.extents.size()));
      return read(tensor, operands);
    }
    case Word::Operator:
      break;
    }
    if (word.operands == 3)
      return operands[0] != 0 ? operands[1] : operands[2];
    return word.operands == 1 ? unaryOperators().at(word.name)(operands[0])
                              : binaryOperators().at(word.name)(operands[0], operands[1]);
  }
};

FormProgram::Word FormProgram::parseWord(const std::string &text) {
  if (text == "?:")
    return {Word::Operator, 0, text, 3};
  if (unaryOperators().count(text))
    return {Word::Operator, 0, text, 1};
  if (binaryOperators().count(text))
    return {Word::Operator, 0, text, 2};
  if (text.size() > 1 && text[0] == '@')
    return {Word::Place, 0, text.substr(1)};
  if (text.size() > 1 && text[0] == '$')
    return {Word::Param, 0, text.substr(1)};
  if (text.size() > 1 && text[0] == '=')
    return {Word::Let, 0, text.substr(1)};
  const size_t open = text.find('[');
  if (open != std::string::npos && open != 0 && text.back() == ']')
    return {Word::Read, 0, text.substr(0, open), size_t(std::strtoul(text.c_str() + open + 1, nullptr, 10))};
  char *end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (*end != '\0')
    throw UserError(fmt::format("unknown word '{}' in a form's program", text));
  return {Word::Number, number, ""};
}

FormProgram::Program FormProgram::parse(const std::string &text) {
  Program program;
  std::istringstream words(text);
  size_t depth = 0;
  for (std::string word; words >> word;) {
    program.push_back(parseWord(word));
    if (program.back().operands > depth)
      throw UserError(fmt::format("'{}' of a form's program '{}' lacks operands", word, text));
    depth = depth - program.back().operands + 1;
  }
  if (depth > 1)
    throw UserError(fmt::format("a form's program '{}' leaves {} values, not one", text, depth));
  return program;
}

FormProgram::FormProgram(const FormTexts &texts)
    : scoreProgram(parse(texts.score)), maskProgram(parse(texts.mask)), sinkProgram(parse(texts.sink)) {
  for (const auto &[name, text] : texts.lets)
    lets.emplace_back(name, parse(text));
}

double FormProgram::score(const Shape &shape, const FormArguments &arguments, const FormElement &element) const {
  return scoreProgram.empty() ? element.score : Run{shape, arguments, element}.withLets(*this).evaluate(scoreProgram);
}

bool FormProgram::mask(const Shape &shape, const FormArguments &arguments, const FormElement &element) const {
  return maskProgram.empty() || Run{shape, arguments, element}.withLets(*this).evaluate(maskProgram) != 0;
}

std::optional<double> FormProgram::sink(const Shape &shape, const FormArguments &arguments,
                                        const FormElement &element) const {
  if (sinkProgram.empty())
    return std::nullopt;
  return Run{shape, arguments, element}.withLets(*this).evaluate(sinkProgram);
}

} // namespace fagen::lab
