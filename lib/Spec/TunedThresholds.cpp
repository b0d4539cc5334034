// fagen: which of the timed values to take where.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TunedThresholds.h"

#include <algorithm>
#include <limits>

using namespace llvm;

namespace fagen {

static constexpr size_t kMostParts = 3;
static constexpr double kWorthAKernel = 0.01; ///< of worst regret
static constexpr double kNoise = 0.005;       ///< below this the spec's own values stay

const std::vector<ThresholdFigure> &thresholdFigures() {
  auto variable = [](SelectVariable which) { return SelectOp{SelectOp::Variable, int64_t(which)}; };
  static const std::vector<ThresholdFigure> all = {
      {"seq_q", {variable(SelectVariable::SeqQ)}, [](const TunedStudy &study) { return study.seqQ; }},
      {"seq_kv", {variable(SelectVariable::SeqKv)}, [](const TunedStudy &study) { return study.seqKv; }},
      {"batch * heads * seq_q",
       {variable(SelectVariable::Batch),
        variable(SelectVariable::Heads),
        {SelectOp::Mul},
        variable(SelectVariable::SeqQ),
        {SelectOp::Mul}},
       [](const TunedStudy &study) { return study.batch * study.heads * study.seqQ; }}};
  return all;
}

/// `noise`: what the spec's own values are forgiven.
static RegretTable regretsOf(ArrayRef<TunedChoice> choices, ArrayRef<TunedClass> classes, double noise) {
  RegretTable table;
  for (const TunedChoice &choice : choices) {
    std::vector<double> &row = table.regret.emplace_back();
    for (size_t i = 0; i != classes.size(); ++i) {
      double best = std::numeric_limits<double>::infinity();
      for (const TunedChoice &other : choices)
        if (other.costs[i] > 0)
          best = std::min(best, other.costs[i]);
      double regret = choice.costs[i] > 0 ? choice.costs[i] / best : std::numeric_limits<double>::infinity();
      row.push_back(choice.isWritten ? std::max(1.0, regret - noise) : regret);
    }
  }
  for (const ThresholdFigure &figure : thresholdFigures()) {
    std::vector<int64_t> &row = table.figures.emplace_back();
    for (TunedClass study : classes)
      row.push_back(figure.of(*study));
  }
  return table;
}

TunedDecision decideTuned(ArrayRef<TunedChoice> choices, ArrayRef<TunedClass> classes) {
  TunedDecision decision;
  DecisionList &list = decision.list;
  list = decide(regretsOf(choices, classes, kNoise), std::min(kMostParts, classes.size()), kWorthAKernel);
  RegretTable table = regretsOf(choices, classes, 0);
  list.worst = 0;
  for (const DecisionPart &part : list.parts)
    for (size_t problem : part.problems)
      list.worst = std::max(list.worst, table.regret[part.choice][problem]);
  for (double regret : table.regret.front())
    decision.writtenWorst = std::max(decision.writtenWorst, regret);
  return decision;
}

} // namespace fagen
