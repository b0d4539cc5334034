// fagen: random conditions of when and select.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "Model.h"

namespace fagen::random {

struct Condition {
  std::string text;
  std::vector<bool> holds; ///< at each point
};

/// A condition over problem keys and the target.
Condition drawWhenCondition(Random &random, const std::vector<Point> &points);

/// A condition over what is known at run time, and over the keys that dispatch knows.
std::string drawSelectCondition(Random &random, const std::vector<Point> &points);

} // namespace fagen::random
