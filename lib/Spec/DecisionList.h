// fagen: which of several choices to take where, by thresholds on figures of the problem.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fagen {

/// Choices 0 to n - 1 on problems 0 to m - 1.
struct RegretTable {
  std::vector<std::vector<double>> regret;   ///< by choice and problem; infinite where it was not measured
  std::vector<std::vector<int64_t>> figures; ///< by figure and problem
};

/// Of the problems that no part before takes, those with figure <= limit take the choice; the last part has no limit.
struct DecisionPart {
  size_t choice = 0, figure = 0;
  int64_t limit = 0;
  std::vector<size_t> problems; ///< that fall to it
};

struct DecisionList {
  std::vector<DecisionPart> parts;
  double worst = 0; ///< regret
};

/// The list of least worst regret; a part more must be worth `gain`, and among equals the mean regret decides, then the
/// first figure and the first choice. No parts when there is no problem.
DecisionList decide(const RegretTable &table, size_t mostParts, double gain);

} // namespace fagen
