// fagen: whether two tensors share memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Most do not: the stretches of memory in which they lie are apart. Slices of one tensor may interleave in one stretch
// and yet share nothing, as K and V of a packed QKV do. Then an equation is asked: a sum of steps of a, less one of
// steps of b, each step a stride times an index, is the distance of their beginnings.
#include "overlap.h"

#include <algorithm>
#include <numeric>

namespace fagen::torch {
namespace {

/// A stride, and the most of it that an index gives.
struct Step {
  int64_t stride, most;
};

struct Bytes {
  intptr_t begin, end; ///< of the first element and past the last; equal without elements
};

Bytes bytesOf(const View &view, int64_t elementBytes) {
  const auto begin = reinterpret_cast<intptr_t>(view.data);
  int64_t reach = elementBytes;
  for (int64_t i = 0; i < view.rank; ++i) {
    if (view.sizes[i] == 0)
      return {begin, begin};
    reach += (view.sizes[i] - 1) * view.strides[i] * elementBytes;
  }
  return {begin, begin + reach};
}

class Equation {
public:
  /// One more index of either tensor: its negative steps are counted from their end, so that all are positive.
  void add(int64_t stride, int64_t size) {
    if (stride == 0 || size <= 1)
      return;
    const auto same = std::find_if(steps.begin(), steps.end(), [&](const Step &step) { return step.stride == stride; });
    if (same != steps.end())
      same->most += size - 1;
    else
      steps.push_back({stride, size - 1});
  }

  void add(const View &view, int64_t elementBytes) {
    for (int64_t i = 0; i < view.rank; ++i)
      add(view.strides[i] * elementBytes, view.sizes[i]);
    add(1, elementBytes);
  }

  /// Whether indices give this sum; true as well where that takes too long.
  bool hasSum(int64_t sum) {
    std::sort(steps.begin(), steps.end(), [](const Step &a, const Step &b) { return a.stride > b.stride; });
    reach.assign(steps.size() + 1, 0);
    divisor.assign(steps.size() + 1, 0);
    for (size_t i = steps.size(); i-- > 0;) {
      reach[i] = reach[i + 1] + steps[i].stride * steps[i].most;
      divisor[i] = std::gcd(divisor[i + 1], steps[i].stride);
    }
    return find(0, sum);
  }

private:
  bool find(size_t from, int64_t sum) {
    if (sum < 0 || sum > reach[from] || (divisor[from] && sum % divisor[from]))
      return false;
    if (sum == 0 || ++tries > kMostTries)
      return true;
    const Step &step = steps[from]; // there is one: the sum is within reach
    const int64_t rest = std::max<int64_t>(sum - reach[from + 1], 0);
    for (int64_t n = (rest + step.stride - 1) / step.stride; n <= step.most && n * step.stride <= sum; ++n)
      if (find(from + 1, sum - n * step.stride))
        return true;
    return false;
  }

  static constexpr int kMostTries = 10000;
  std::vector<Step> steps;
  std::vector<int64_t> reach, divisor; ///< of this step and those after it
  int tries = 0;
};

} // namespace

bool mayOverlap(const View &a, int64_t bytesOfA, const View &b, int64_t bytesOfB) {
  const Bytes first = bytesOf(a, bytesOfA), second = bytesOf(b, bytesOfB);
  if (first.begin == first.end || second.begin == second.end || first.end <= second.begin || second.end <= first.begin)
    return false;
  // begin + steps of a == other begin + steps of b, where the steps of b are counted down from its last byte
  Equation equation;
  equation.add(a, bytesOfA);
  equation.add(b, bytesOfB);
  return equation.hasSum(second.end - 1 - first.begin);
}

} // namespace fagen::torch
