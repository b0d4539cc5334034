// fagen: draws a spec that fagen must accept.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nothing is drawn and thrown away: a key gets one of the values that break no rule (Rules.h) with what is drawn
// already, at every point where the setting holds.
#pragma once

#include "Model.h"

namespace fagen::random {

/// Targets, kernels, and all that is in them. Any targets, or that one.
Spec drawSpec(Random &random, const TargetInfo *target);

/// The problem's settings; then `kernel.points` are its points on `targets`. At most `most` of them.
void drawProblem(Random &random, const std::vector<const TargetInfo *> &targets, unsigned most, Kernel &kernel);

/// One schedule's settings and whens. `variants` is how many variants a point may get of it by axes.
void drawSchedule(Random &random, const std::vector<Point> &points, unsigned variants, Schedule &schedule);

} // namespace fagen::random
