// fagen: functions of one number that a reference may apply to a sum.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

namespace fagen::lab {

struct Function {
  const char *name;
  double (*value)(double x);
  double slope;                 ///< the most by which it changes where x changes by 1
  double (*ownError)(double x); ///< of text that computes it by the GPU's approximations
};

/// relu, tanh, and gelu in the form with tanh (Hendrycks and Gimpel, arXiv:1606.08415); null for other names.
const Function *functionNamed(const std::string &name);
/// "relu, tanh, gelu"
std::string functionNames();

} // namespace fagen::lab
