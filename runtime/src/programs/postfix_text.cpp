// fagen: postfix programs of manifests.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "postfix_text.h"

#include <algorithm>
#include <optional>

namespace fagen {
namespace {

/// Operations and variables by their numbers in <fagen/table.h>.
constexpr const char *kOperations[] = {nullptr,    nullptr, "add", "sub", "mul", "div", "mod",
                                       "ceil_div", "neg",   "not", "eq",  "ne",  "lt",  "le",
                                       "gt",       "ge",    "and", "or",  "min", "max", "floor_div"};
constexpr const char *kVariables[] = {"batch",       "heads",      "kv_heads", "seq_q", "seq_kv", "sms",
                                      "head_dim_qk", "head_dim_v", "dtype",    "mask",  "splits", "row"};

template <size_t N> std::optional<uint32_t> indexOf(const char *const (&names)[N], const std::string &name) {
  for (uint32_t i = 0; i < N; ++i)
    if (names[i] && name == names[i])
      return i;
  return std::nullopt;
}

} // namespace

std::vector<fagen_op> readProgram(const Field &field, const std::vector<std::string> &params) {
  std::vector<fagen_op> program;
  for (const Field &item : field.items()) {
    if (!item.isText())
      program.push_back({FAGEN_OP_CONSTANT, 0, item.integer()});
    else if (auto param = std::find(params.begin(), params.end(), item.text()); param != params.end())
      program.push_back({FAGEN_OP_VARIABLE, 0, FAGEN_VAR_FORM_0 + (param - params.begin())});
    else if (auto variable = indexOf(kVariables, item.text()))
      program.push_back({FAGEN_OP_VARIABLE, 0, *variable});
    else if (auto operation = indexOf(kOperations, item.text()))
      program.push_back({*operation, 0, 0});
    else
      item.fail("is " + inQuotes(item.text()) + ", neither an operation nor a variable");
  }
  return program;
}

} // namespace fagen
