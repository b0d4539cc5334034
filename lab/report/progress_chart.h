// fagen: how a search went on: each evaluation, and the best so far.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "canvas.h"

#include <optional>

namespace fagen::lab::page {

struct Evaluation {
  std::string candidate, outcome;
  std::optional<double> microseconds; ///< of one that was timed
  bool counts;                        ///< may be the best: it was timed to the end
};

/// The least time after each evaluation; nothing before the first that counts.
std::vector<std::optional<double>> bestSoFar(const std::vector<Evaluation> &evaluations);

/// Filled dots: timed; hollow ones: stopped early; crosses at the top: without a time. The line is the best so far, the
/// dashed one what the spec ships.
Chart progressChart(const std::string &id, const std::string &title, const std::vector<Evaluation> &evaluations,
                    std::optional<double> shippedMicros);

} // namespace fagen::lab::page
