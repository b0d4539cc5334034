// fagen: runs every variant on every case that it fits and judges what comes out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/cases/suites.h"
#include "lab/device/case_memory.h"

#include <functional>

namespace fagen::lab {

struct CheckOptions {
  std::string suite = "smoke";
  std::vector<Case> cases;           ///< instead of the suite's, when not empty
  std::vector<std::string> variants; ///< only these, when not empty
  int64_t part = 1, parts = 1;       ///< only every `parts`-th case, from number `part` on
  uint64_t seed = 1;
  int runs = kTolerances.runs; ///< of a case; the emulator's copies land late, early and at random in turn
  int seeds = 1;               ///< of the emulator: so many times as many runs, each in another order of the threads
  bool endsAtFailure = false;  ///< the first case that fails is the last one; steady cases, quicker to fail, come first
  std::string deviceFlag;      ///< as repro lines spell it: "gpu", "cpu"
};

struct CaseResult {
  const KernelSet *set = nullptr;
  const fagen_row *row = nullptr;
  Case testCase;
  Measured measured;
  double seconds = 0;
  std::map<std::string, double> numbers = {}; ///< of the form's scalars
};

struct CheckReport {
  std::vector<CaseResult> results;
  std::vector<Failure> failures;     ///< of the whole: a case that no variant fits, a lost device
  int64_t skipped = 0;               ///< pairs of variant and case that do not fit (alignment, strides, LSE)
  std::vector<std::string> tooLarge; ///< cases whose tensors this device does not hold

  bool passed() const;
};

using Progress = std::function<void(size_t done, size_t total, const std::string &what)>;

CheckReport runCheck(const std::vector<std::unique_ptr<KernelSet>> &sets, TestDevice &device, ReferenceEngine &engine,
                     const CheckOptions &options, const Progress &progress);

/// UserError, with the reason, when a check that the user's cases or variants chose ran nothing.
void requireRuns(const CheckReport &report, const CheckOptions &options);

/// The command that runs one variant on one case again.
std::string reproLine(const CaseResult &result, const CheckOptions &options);

} // namespace fagen::lab
