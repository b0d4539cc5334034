// fagen: bank conflicts of variants, counted by the emulator on a problem that runs all their loops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "check.h"

namespace fagen::lab {

struct ConflictOptions {
  std::string pattern;     ///< of variants, with * and ?; empty: all
  std::vector<Case> cases; ///< instead of one of whole tiles, when not empty
  uint64_t seed = 1;
};

/// Accesses of one kind and width from one line, and the op that stands there.
struct ConflictSite {
  emulator::BankSite counts;
  std::string op, spec; ///< empty when the manifest names none

  uint64_t excess() const { return counts.wavefronts - counts.ideal; }
};

/// One variant on one case, its launches added up.
struct ConflictResult {
  const KernelSet *set = nullptr;
  const fagen_row *row = nullptr;
  Case testCase;
  std::string symbol; ///< of the launch
  std::vector<ConflictSite> sites;
  std::vector<Failure> failures; ///< the emulator's findings; counts mean nothing then
  double seconds = 0;
};

/// Two tiles of rows and three of keys, one head: every loop runs, and nothing is cut off.
Case wholeTilesCase(const KernelSet &set, const fagen_row &row);

/// Every variant that the pattern names on every case that it fits. UserError when none does.
std::vector<ConflictResult> runConflicts(const std::vector<std::unique_ptr<KernelSet>> &sets,
                                         const ConflictOptions &options, const Progress &progress);

/// Whether `text` matches the pattern, in which * stands for any characters and ? for one.
bool matchesPattern(std::string_view pattern, std::string_view text);

/// Kinds of access that --fail-on takes: those of BankSite::kind, and 2B, 4B, 8B, 16B, all.
std::vector<std::string> conflictKinds();
bool isOfKind(const emulator::BankSite &site, std::string_view kind);

} // namespace fagen::lab
