// fagen: integer expressions over a program's sizes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "size_expr.h"

#include "lab/cases/problem.h"

#include <algorithm>
#include <fmt/format.h>

namespace fagen::lab {

namespace {

constexpr const char *kOperations[] = {"add", "sub", "mul", "floor_div", "ceil_div", "mod", "min", "max"};

bool isOperation(const std::string &word) {
  return std::find(std::begin(kOperations), std::end(kOperations), word) != std::end(kOperations);
}

int64_t floorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
int64_t ceilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0 && (a < 0) == (b < 0)); }

int64_t apply(const std::string &operation, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflows = false;
  if (operation == "add")
    overflows = __builtin_add_overflow(a, b, &result);
  else if (operation == "sub")
    overflows = __builtin_sub_overflow(a, b, &result);
  else if (operation == "mul")
    overflows = __builtin_mul_overflow(a, b, &result);
  else if (operation == "min" || operation == "max")
    result = operation == "min" ? std::min(a, b) : std::max(a, b);
  else if (b == 0 || (a == INT64_MIN && b == -1))
    throw UserError(fmt::format("{} {} by {} has no value", operation, a, b));
  else if (operation == "floor_div")
    result = floorDiv(a, b);
  else if (operation == "ceil_div")
    result = ceilDiv(a, b);
  else
    result = a - floorDiv(a, b) * b;
  if (overflows)
    throw UserError(fmt::format("{} of {} and {} is beyond 64 bits", operation, a, b));
  return result;
}

} // namespace

SizeExpr::SizeExpr(std::vector<std::variant<int64_t, std::string>> given) : terms(std::move(given)) {
  int depth = 0;
  for (const auto &term : terms) {
    const std::string *word = std::get_if<std::string>(&term);
    const bool combines = word && isOperation(*word);
    if (combines && depth < 2)
      throw UserError(fmt::format("operation '{}' lacks an operand", *word));
    depth += combines ? -1 : 1;
  }
  if (depth != 1)
    throw UserError(fmt::format("it leaves {} values instead of one", depth));
}

int64_t SizeExpr::evaluate(const Sizes &sizes) const {
  std::vector<int64_t> stack;
  for (const auto &term : terms) {
    if (const int64_t *number = std::get_if<int64_t>(&term)) {
      stack.push_back(*number);
      continue;
    }
    const std::string &word = std::get<std::string>(term);
    if (isOperation(word)) {
      const int64_t b = stack.back();
      stack.pop_back();
      stack.back() = apply(word, stack.back(), b);
      continue;
    }
    const auto found = sizes.find(word);
    if (found == sizes.end())
      throw UserError(fmt::format("size '{}' has no value; give it as --size {}=...", word, word));
    stack.push_back(found->second);
  }
  return stack.back();
}

std::vector<std::string> SizeExpr::names() const {
  std::vector<std::string> found;
  for (const auto &term : terms)
    if (const std::string *word = std::get_if<std::string>(&term); word && !isOperation(*word))
      found.push_back(*word);
  return found;
}

} // namespace fagen::lab
