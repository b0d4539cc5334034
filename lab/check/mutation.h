// fagen: runs kernels with one barrier or wait changed, and compares what the emulator sees with what the compiler's
// analysis said of the change.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "check.h"

namespace fagen::lab {

/// A change at one site, as `fagen --emit=mutants` lists it.
struct MutantCase {
  unsigned site = 0;
  std::string what; ///< "barrier cta", "copy_wait 2"
  std::string op;   ///< "barrier@11"
  std::string spec;
  std::string over; ///< of a moved one: the op that it passes
  std::string why;  ///< of a needed one: the hazard that is open without it
  bool isNeeded = false;
  emulator::Mutation mutation;

  /// "copy_wait 2 (copy_wait@12, site 1) moved after barrier@13"
  std::string text() const;
};

/// The mutants of one kernel of one launch.
struct MutantKernel {
  std::string variant, policy, symbol;
  std::vector<MutantCase> mutants;
};

/// Reads what `fagen --emit=mutants` wrote. UserError with the place of what is missing or wrong.
std::vector<MutantKernel> readMutants(const std::string &path);

enum class MutantOutcome {
  Caught,         ///< needed, and the emulator noticed
  Redundant,      ///< not needed, and nothing was noticed
  EmulatorSilent, ///< needed, but nothing was noticed
  AnalysisSilent, ///< not needed, but the emulator noticed
  NotMinimal,     ///< `minimal` has a site that can go
};
inline bool isExplained(MutantOutcome outcome) {
  return outcome == MutantOutcome::Caught || outcome == MutantOutcome::Redundant;
}
const char *nameOf(MutantOutcome outcome);

struct MutantResult {
  const MutantCase *mutant = nullptr;
  MutantOutcome outcome = MutantOutcome::Redundant;
  std::string finding;  ///< what the emulator noticed first; empty: nothing
  std::string testCase; ///< on which it did
  int attempt = 0;
};

struct MutationResult {
  const KernelSet *set = nullptr;
  const fagen_row *row = nullptr;
  const MutantKernel *kernel = nullptr;
  std::vector<MutantResult> mutants;
  std::vector<Case> cases;       ///< the problems, in the order in which they are tried
  std::vector<Failure> failures; ///< of the kernel itself, unchanged; its mutants say nothing then
  double seconds = 0;

  size_t sites() const;
  size_t count(MutantOutcome outcome) const;
  size_t unexplained() const;
};

struct MutationOptions {
  std::string pattern; ///< of symbols, with * and ?; empty: all
  size_t sample = 0;   ///< so many mutants, drawn from all of them; 0: all
  uint64_t seed = 1;   ///< of inputs and of the sample
  int attempts = 1;    ///< runs of a mutant on each problem, with other landings and other orders of threads
};

/// Problems on which every loop of the row runs: those in steady state (steady.h), tails, and all numbers of steps up
/// to beyond its ring.
std::vector<Case> mutationCases(const KernelSet &set, const fagen_row &row, const fagen_device *device);

/// Runs every mutant, kernels side by side. UserError when a kernel of the list is in no set.
std::vector<MutationResult> runMutation(const std::vector<std::unique_ptr<KernelSet>> &sets,
                                        const std::vector<MutantKernel> &kernels, const MutationOptions &options,
                                        const Progress &progress);

} // namespace fagen::lab
