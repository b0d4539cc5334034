// fagen: what the keys of one variant must satisfy together: numbers, stated a second time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Language.md is the source of the rules of numbers, and lib/Spec/Checks.cpp the other statement of them: where
// the two differ, one of them is wrong, and a run of random specs shows it. Which values go with which, and facts of
// instructions and targets, come from the tables; the size of shared memory from the lowered kernel.
#pragma once

#include "Model.h"

namespace fagen::random {

/// The same rule for the same key is broken once.
struct Breach {
  llvm::StringRef rule;
  OptionKey key; ///< where the error stands
};

/// Names of all rules.
llvm::ArrayRef<llvm::StringRef> allRules();

/// What is wrong with a schedule at a point. Keys that `schedule` lacks have their defaults.
std::vector<Breach> findBreaches(const Point &point, const Values &schedule);

/// Whether the rule may be among them. Nothing is lowered for it, so that it is cheap; about shared memory it says yes.
bool mayBreak(llvm::StringRef rule, const Point &point, const Values &schedule);

/// Bytes of shared memory that the schedule takes at the point.
uint64_t sharedBytes(const Point &point, const Values &schedule);

/// Whether a value may stand in a spec for the target at all.
bool isAvailable(const OptionValueInfo &value, const TargetInfo &target);

/// Whether K and V have one byte an element.
bool hasBytes(const Values &problem);

/// Head dims are multiples of these then: so many columns of bytes are read from shared memory at once.
constexpr unsigned kBytesColumns = 32;

/// Numbers of warps that can share so many query rows; at most 16. None where the rows do not suit the instructions.
std::vector<unsigned> warpsFor(Mma mma, unsigned rows);

/// The most query rows of a tile, and the most keys.
std::pair<unsigned, unsigned> largestTile(Mma mma);

/// How many of the warps stand side by side over keys.
unsigned keyWarps(Mma mma, unsigned rows, unsigned warps);

/// Places that at(...) must name for a schedule, each as a list of alternatives; nothing where no set of places will
/// do: order is needed inside a reduction, on Q's way to registers, or in the merge after the loop.
std::optional<std::vector<std::vector<llvm::StringRef>>> neededPlaces(const Point &point, const Values &schedule);

} // namespace fagen::random
