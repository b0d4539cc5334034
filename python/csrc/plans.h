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

/// Whether the tensors of a call with the plan's options are as planned, and as aligned.
bool isAsPlanned(const Plan &plan, const Call &call);

[[noreturn]] void failOtherThanPlanned(const Plan &plan);

} // namespace fagen::torch
