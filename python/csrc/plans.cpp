// fagen: plans by their numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plans.h"

#include <mutex>
#include <unordered_map>

namespace fagen::torch {
namespace {

struct Plans {
  std::mutex mutex;
  int64_t last = 0;
  std::unordered_map<int64_t, Plan> all;
};

Plans &plans() {
  static Plans *plans = new Plans; // never destroyed: Python's objects may end later
  return *plans;
}

} // namespace

int64_t addPlan(const Options &options, std::shared_ptr<const Settled> settled) {
  Plans &known = plans();
  std::lock_guard lock(known.mutex);
  known.all[++known.last] = {options, std::move(settled)};
  return known.last;
}

Plan planOf(int64_t number) {
  Plans &known = plans();
  std::lock_guard lock(known.mutex);
  const auto found = known.all.find(number);
  if (found == known.all.end())
    fail("fagen.Error: no plan of number %lld in this process", static_cast<long long>(number));
  return found->second;
}

void forgetPlan(int64_t number) {
  std::lock_guard lock(plans().mutex);
  plans().all.erase(number);
}

bool isAsPlanned(const Plan &plan, const Call &call) { return keyOf(call) == plan.settled->key; }

void failOtherThanPlanned(const Plan &plan) {
  auto number = [](int64_t value) { return static_cast<long long>(value); };
  const fagen_problem &problem = plan.settled->problem;
  fail("fagen.Error: planned for %lld batches, %lld heads of q and %lld of k, %lld rows and %lld keys, head_dim %lld "
       "and "
       "%lld, with their strides, type and device; called with other tensors",
       number(problem.batch), number(problem.heads), number(problem.kv_heads), number(problem.seq_q),
       number(problem.seq_kv), number(problem.head_dim_qk), number(problem.head_dim_v));
}

} // namespace fagen::torch
