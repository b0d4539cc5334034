// fagen: what a tuner may choose: axes, their values, and the points that the compiler takes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tune/space.h"

#include <fmt/format.h>
#include <stdexcept>

namespace fagen::lab::tune {

int Space::axisOf(const std::string &name) const {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].name == name)
      return static_cast<int>(i);
  throw std::logic_error("no axis " + name);
}

const std::string &Space::value(const Point &point, const std::string &axis) const {
  size_t index = static_cast<size_t>(axisOf(axis));
  return axes[index].values[static_cast<size_t>(point[index])];
}

int Space::number(const Point &point, const std::string &axis) const { return std::stoi(value(point, axis)); }

std::string nameOf(const Space &space, const Point &point) {
  return fmt::format("t{}x{}_w{}_s{}_{}_{}_q_{}", space.value(point, "rows"), space.value(point, "keys"),
                     space.value(point, "warps"), space.value(point, "stages"), space.value(point, "copy"),
                     space.value(point, "swizzle"), space.value(point, "q_in"));
}

} // namespace fagen::lab::tune
