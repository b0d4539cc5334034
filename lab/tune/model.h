// fagen: a cheap estimate of a candidate's time, to begin a search where it is likely to end.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/cases/problem.h"
#include "space.h"

namespace fagen::lab::tune {

/// Relative cost of a point on a problem: waves of CTAs, steps of a CTA, what a step costs beside its products, and how
/// well resident warps hide its latencies; with wgmma, clocks of the unit that has most to do. It ranks; it is no
/// prediction of microseconds.
double modelCost(const Space &space, const Point &point, const Shape &shape, Mask mask, int sms);

} // namespace fagen::lab::tune
