// fagen: the values that steer a kernel's roles, one choice after the other.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops, conditions and positions depend on a few lets. An analysis tries all values of theirs that could matter: see
// the head of fagen/Analysis/Timeline.h.
#pragma once

#include "ExprCode.h"

#include "fagen/Analysis/Timeline.h"
#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/StringSet.h"

#include <optional>
#include <vector>

namespace fagen {

class SteeringChoices {
public:
  /// Of the longest runs that are tried; needed only when an expression compares with large literals.
  static constexpr int64_t kMostSteps = 64;

  /// Begins with a timeline for each role, or for each group of its warps where groups have values of their own. What
  /// constants and other lets say goes into `values`.
  SteeringChoices(const ir::Kernel &kernel, llvm::ArrayRef<const ir::Role *> roles, std::vector<Timeline> &timelines,
                  ExprValues &values, Extent extent = Extent::Whole);

  unsigned lets() const { return letCount; }
  /// The largest value that is tried.
  int64_t largest() const { return limit; }
  /// Of what steers roles, that with the largest literal; null where none has one.
  const ir::Expr &withLargestLiteral() const { return farthest; }

  /// Calls `visit` with one choice after the other made, for as long as it says to go on.
  void forEach(llvm::function_ref<bool()> visit);

  using Values = llvm::SmallVector<int64_t, 12>;
  /// All that tells a timeline from the same warps' timelines by other choices: how many turns there are, and the
  /// values that steer it in each.
  Values valuesOf(unsigned timeline) const;
  /// Those that steer it in one turn.
  Values valuesOf(unsigned timeline, size_t turn) const;
  /// Gives the lets the chosen values, for the warps of a timeline: as the role begins, and in each turn.
  void begin(unsigned timeline);
  void beginTurn(unsigned timeline, size_t turn);
  /// "full_tiles = 2, key_tiles of group 1 = 3 0"
  std::string text() const;

private:
  /// A let whose value must be chosen, for one group of warps if it names `group_row`.
  struct Steering {
    const ir::Let *let;
    std::optional<unsigned> group;
    unsigned number; ///< of its value
  };

  void findLimit();
  void addTimelines(const llvm::StringSet<> &ofGroups);
  llvm::SmallVector<unsigned, 8> steeringOf(const Timeline &timeline) const;
  void findDifferences();
  bool isPossible(unsigned let, int64_t value) const;
  void enumerate(unsigned next);
  void enumerateTurns();
  void enumerateTurns(llvm::ArrayRef<int64_t> most);
  void enumerateTurn(llvm::ArrayRef<int64_t> most, unsigned next);
  void choose();
  void assign(unsigned timeline, llvm::ArrayRef<int64_t> choice);
  std::optional<int64_t> &valueOf(llvm::StringRef name) { return values[values.numberOf(name)]; }

  const ir::Kernel &kernel;
  const llvm::ArrayRef<const ir::Role *> roles;
  const Extent extent;
  std::vector<Timeline> &timelines;
  ExprValues &values;
  llvm::function_ref<bool()> visit = nullptr;
  bool goesOn = true; ///< so `visit` said
  unsigned letCount = 0;
  unsigned groups = 0; ///< of warps, that have values of their own
  std::vector<Steering> steering;
  std::vector<int64_t> chosen;                                       ///< the value of each
  std::vector<llvm::SmallVector<unsigned, 8>> own;                   ///< by timeline: what steers it
  std::vector<std::vector<std::optional<ir::Interval>>> differences; ///< of each let to those before it, where known
  int64_t limit = 0, turnLimit = 0;
  ir::Expr farthest;
  const ir::Let *turnsLet = nullptr;                     ///< the turns of the loop that carries a value
  llvm::SmallVector<std::vector<int64_t>, 3> turnValues; ///< of the steering lets, by turn
};

} // namespace fagen
