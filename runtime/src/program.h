// fagen: the interpreter of a table's postfix programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/table.h>

#include <optional>
#include <span>

namespace fagen {

/// Values of FAGEN_VAR_..., by their numbers.
struct Variables {
  static constexpr unsigned kCount = 11;
  int64_t values[kCount] = {};
};

/// The program's value; none when it divides by zero or is malformed (checkProgram says why).
std::optional<int64_t> evaluateWith(const fagen_op *program, uint32_t size, std::span<const int64_t> values);
inline std::optional<int64_t> evaluate(const fagen_op *program, uint32_t size, const Variables &variables) {
  return evaluateWith(program, size, variables.values);
}

/// What is wrong with a program, or null: an unknown operation or variable, a stack that under- or overflows, or does
/// not end with one value.
const char *checkProgram(const fagen_op *program, uint32_t size, uint64_t variables = Variables::kCount);

} // namespace fagen
