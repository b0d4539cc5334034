// fagen: what a tuner may choose: axes, their values, and the points that the compiler takes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <string>
#include <vector>

namespace fagen::lab::tune {

/// Structural axes say how a kernel works, numeric ones how much it does at once; a step on a numeric one is small.
struct Axis {
  std::string name;
  std::vector<std::string> values; ///< numeric ones ascending
  bool structural = false;
};

/// An index into each axis' values.
using Point = std::vector<int>;

/// What the compiler says of a point.
struct Estimate {
  int registers = 0, ctasPerSm = 0, sharedBytes = 0;
};

struct Space {
  std::vector<Axis> axes;
  std::vector<Point> points; ///< those that the compiler takes; the first is what the spec ships
  std::map<Point, Estimate> estimates;

  int axisOf(const std::string &name) const;
  const std::string &value(const Point &point, const std::string &axis) const;
  int number(const Point &point, const std::string &axis) const;
};

/// "t128x64_w4_s2_cp_async_xor_q_shared": a C identifier that tells points of a space apart.
std::string nameOf(const Space &space, const Point &point);

} // namespace fagen::lab::tune
