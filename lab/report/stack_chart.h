// fagen: bars made of parts: what shares of a whole there are.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "canvas.h"

namespace fagen::lab::page {

struct StackPart {
  std::string name;
  double share; ///< of the whole, 0 to 1
};

struct Stack {
  std::string label;
  std::vector<StackPart> parts;
};

/// Of the parts in their order: "A" to "Z", then "a" to "z".
std::string partKey(size_t index);

/// One bar below the other from 0 to 100 %; a part has the key of its name in `names`, which a legend explains, and its
/// percentage where there is room.
Chart stackChart(const std::string &id, const std::string &title, const std::vector<std::string> &names,
                 const std::vector<Stack> &stacks);

} // namespace fagen::lab::page
