// fagen: what a tuner may choose: axes, their values, and the points that the compiler takes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "space.h"
#include "lab/cases/problem.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <stdexcept>

namespace fagen::lab::tune {

const std::string &Space::value(const Point &point, const std::string &key) const {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].name == key)
      return axes[i].values[static_cast<size_t>(point[i])];
  auto found = fixed.find(key);
  if (found == fixed.end())
    throw std::logic_error("no key " + key);
  return found->second;
}

int Space::number(const Point &point, const std::string &key) const {
  return static_cast<int>(parseInteger(value(point, key), key));
}

int Space::numberOr(const Point &point, const std::string &key, int other) const {
  bool isAxis = std::any_of(axes.begin(), axes.end(), [&](const Axis &axis) { return axis.name == key; });
  return isAxis || fixed.count(key) ? number(point, key) : other;
}

std::string nameOf(const Space &space, const Point &point) {
  std::string name;
  for (size_t i = 0; i < space.axes.size(); ++i) {
    const std::string &axis = space.axes[i].name, &value = space.axes[i].values[static_cast<size_t>(point[i])];
    if (axis == "rows")
      name = "t" + value;
    else if (axis == "keys")
      name += "x" + value;
    else if (!space.axes[i].structural)
      name += fmt::format("_{}{}", axis[0], value);
    else
      name += axis == "copy" || axis == "swizzle" ? "_" + value
              : axis.ends_with("_in")             ? fmt::format("_{}_{}", axis[0], value)
                                                  : fmt::format("_{}_{}", axis, value);
  }
  std::replace_if(name.begin(), name.end(), [](unsigned char letter) { return !std::isalnum(letter); }, '_');
  return name;
}

std::map<std::string, std::string> settingsOf(const Space &space, const Point &point) {
  std::map<std::string, std::string> settings{
      {"tile", fmt::format("{} x {}", space.value(point, "rows"), space.value(point, "keys"))}};
  for (const Axis &axis : space.axes)
    if (axis.name != "rows" && axis.name != "keys")
      settings[axis.name] = space.value(point, axis.name);
  return settings;
}

std::optional<Point> pointOf(const Space &space, const std::map<std::string, std::string> &settings) {
  for (const Point &point : space.points) {
    auto own = settingsOf(space, point);
    bool same = std::all_of(settings.begin(), settings.end(), [&](const auto &setting) {
      auto found = own.find(setting.first);
      return found != own.end() && found->second == setting.second;
    });
    if (same && own.size() == settings.size())
      return point;
  }
  return std::nullopt;
}

} // namespace fagen::lab::tune
