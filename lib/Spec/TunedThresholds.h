// fagen: which of the timed values to take where.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "DecisionList.h"
#include "TunedResults.h"

namespace fagen {

/// What thresholds can be on.
struct ThresholdFigure {
  const char *text;
  std::vector<SelectOp> program;
  int64_t (*of)(const TunedStudy &study);
};

const std::vector<ThresholdFigure> &thresholdFigures();

struct TunedDecision {
  DecisionList list; ///< over thresholdFigures(), choices and classes; no parts when nothing was measured widely enough
  double writtenWorst = 0; ///< regret of the spec's values alone; infinite when they were not measured everywhere
};

/// Of all lists of choices by thresholds the one of least worst regret.
TunedDecision decideTuned(llvm::ArrayRef<TunedChoice> choices, llvm::ArrayRef<TunedClass> classes);

} // namespace fagen
