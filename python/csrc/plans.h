// fagen: plans by their numbers. One ends with the Python object that asked for it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "settled.h"

namespace fagen::torch {

struct Plan {
  Options options;
  std::shared_ptr<const Settled> settled;
};

int64_t addPlan(const Options &options, std::shared_ptr<const Settled> settled);

/// Fails where there is none of that number.
Plan planOf(int64_t number);

void forgetPlan(int64_t number);

/// Computes a call with the plan's options; false where its tensors are not as planned, or not as aligned.
bool runAsPlanned(const Plan &plan, const Call &call);

[[noreturn]] void failOtherThanPlanned(const Plan &plan);

} // namespace fagen::torch
