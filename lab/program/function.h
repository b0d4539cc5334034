// fagen: functions of one number, in f64, with the error that the GPU's instructions have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

namespace fagen::lab {

struct Function {
  const char *name;
  double (*value)(double);
  /// How far a result may be off where the argument is off by at most so much.
  double (*error)(double x, double of);
};

/// Null where there is none.
const Function *functionNamed(const std::string &name);
/// "relu, tanh, gelu", for messages.
std::string functionNames();

} // namespace fagen::lab
