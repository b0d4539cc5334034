// fagen: a spec as it is drawn: what every setting means, before it is text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "Random.h"
#include "fagen/Spec/Options.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fagen::random {

/// One value of a key.
struct Plain {
  unsigned number;                ///< enumerator, integer, bytes, switch, tile rows, QK head dim
  unsigned second;                ///< tile keys, V head dim, the number in parentheses
  std::vector<std::string> names; ///< the names in parentheses

  Plain(unsigned number = 0, unsigned second = 0) : number(number), second(second) {}
  bool operator==(const Plain &other) const = default;
};

/// Keys with one value each.
using Values = std::map<OptionKey, Plain>;

/// A setting: items of an axis, each with the choices of its tune, of which the first counts.
struct Setting {
  const OptionInfo *option = nullptr;
  std::vector<std::vector<Plain>> items;
  bool isAxis = false;
  bool isWrong = false; ///< a mistake was made here

  Setting(OptionKey key, Plain value) : option(&optionInfo(key)), items{{std::move(value)}} {}
  Setting(OptionKey key, std::vector<std::vector<Plain>> items, bool isAxis)
      : option(&optionInfo(key)), items(std::move(items)), isAxis(isAxis) {}
};

struct When;

struct Statement {
  std::unique_ptr<Setting> setting; ///< or
  std::unique_ptr<When> when;
};

struct When {
  std::string condition;
  std::vector<bool> holds; ///< at each point, in the order of Kernel::points
  std::vector<Statement> body;
};

struct Schedule {
  std::string name; ///< empty: unnamed
  std::vector<Statement> body;
  bool isWrong = false; ///< what is wrong is no setting of it
};

/// One point of the problem axes on one target.
struct Point {
  const TargetInfo *target = nullptr;
  Values problem; ///< every key
};

struct Kernel {
  std::string name;
  std::vector<Setting> problem;
  std::vector<Schedule> schedules;
  std::vector<std::string> select; ///< "when seq_q <= 32 : prefill"; empty: no select
  std::vector<std::string> gates;  ///< "registers <= 255"
  std::vector<Point> points;
};

struct Spec {
  std::vector<const TargetInfo *> targets;
  std::vector<Kernel> kernels;
};

/// The value that a key has where nobody sets it; nothing where policy chooses it, or where it must be set.
std::optional<Plain> defaultValue(const OptionInfo &option);

/// Every point of the kernel's problem axes on each target.
std::vector<Point> expandPoints(const Kernel &kernel, const std::vector<const TargetInfo *> &targets);

/// The settings that hold at a point, the last of each key.
using Resolved = std::map<OptionKey, Setting *>;
Resolved resolve(Schedule &schedule, size_t point);

/// Calls `visit` with each combination of the axes' items: first choices only.
void forEachVariant(const Resolved &resolved, llvm::function_ref<void(const Values &)> visit);

/// The value in one of the ways in which a spec can write it.
std::string textOf(const OptionInfo &option, const Plain &plain, Random &random);
/// The setting's value: an axis, tunes, or one plain value.
std::string textOf(const Setting &setting, Random &random);

} // namespace fagen::random
