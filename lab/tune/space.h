// fagen: what a tuner may choose: axes, their values, and the points that the compiler takes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <optional>
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
  double microseconds = 0; ///< what its time model says of the problem (docs/internals/Model.md); 0: nothing
  int leastRegisters = 0;  ///< what fragments and what no kernel does without need
  int mostRegisters = 0;   ///< of a thread that computes
};

struct Space {
  std::vector<Axis> axes;
  std::map<std::string, std::string> fixed; ///< the other keys of the schedule
  std::vector<Point> points;                ///< those that the compiler takes; the first is what the spec ships
  std::map<Point, Estimate> estimates;
  size_t pruned = 0; ///< points left out because their fragments alone leave no registers for anything else
  double pruneOver =
      0; ///< the time model may leave out what it finds so many times slower than the fastest; 0: nothing

  const std::string &value(const Point &point, const std::string &key) const;
  int number(const Point &point, const std::string &key) const;
  int numberOr(const Point &point, const std::string &key, int other) const; ///< `other` of schedules without the key
};

/// "t128x64_w4_s2_cp_async_xor_q_shared": a C identifier that tells points of a space apart.
std::string nameOf(const Space &space, const Point &point);

/// The point as a spec says it: tile = "128 x 64", warps = "4", ...
std::map<std::string, std::string> settingsOf(const Space &space, const Point &point);
/// The point of the space that has these settings; nothing when there is none.
std::optional<Point> pointOf(const Space &space, const std::map<std::string, std::string> &settings);

} // namespace fagen::lab::tune
