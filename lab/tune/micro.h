// fagen: synthetic tiles: a problem's grid of CTAs with few keys, timed to tell what a step costs and what the rest.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/cases/cases.h"

#include <string>

namespace fagen::lab::tune {

/// Two problems that differ in their number of keys only. They have the rows of the whole problem, or as many as keep
/// every SM busy; all heads share K and V, so that products and latencies are timed rather than memory.
struct MicroProblem {
  Case shorter, longer;
  double times = 1; ///< the whole problem has so many times the rows
};

MicroProblem microProblem(const Case &problem, int sms);

/// What a kernel takes for the whole problem if a step costs in it what it costs between the two.
double predictFromMicro(const MicroProblem &micro, const Case &problem, double shorterMicroseconds,
                        double longerMicroseconds);

} // namespace fagen::lab::tune
