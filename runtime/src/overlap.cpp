// fagen: whether two tensors share memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Most do not: the stretches of memory in which they lie are apart. Slices of one tensor may interleave in one stretch
// and yet share nothing, as K and V of a packed QKV do. Then an equation is asked: a sum of steps of a, less one of
// steps of b, each step a stride times an index, is the distance of their beginnings.
#include "overlap.h"

#include <algorithm>
#include <numeric>

namespace fagen {
namespace {

/// A stride, and the most of it that an index gives.
struct Step {
  int64_t stride, most;
};

struct Bytes {
  intptr_t begin, end; ///< of the first element, and after the last; equal without elements
};

Bytes bytesOf(const Elements &of) {
  const auto begin = reinterpret_cast<intptr_t>(of.data);
  int64_t reach = of.bytes;
  for (int64_t i = 0; i < of.rank; ++i) {
    if (of.sizes[i] == 0)
      return {begin, begin};
    reach += (of.sizes[i] - 1) * of.strides[i] * of.bytes;
  }
  return {begin, begin + reach};
}

class Equation {
public:
  /// One more index of either tensor: its negative steps are counted from their end, so that all are positive.
  void add(int64_t stride, int64_t size) {
    if (stride == 0 || size <= 1)
      return;
    Step *const end = steps + count;
    Step *const same = std::find_if(steps, end, [&](const Step &step) { return step.stride == stride; });
    if (same == end)
      steps[count++] = {stride, size - 1};
    else
      same->most += size - 1;
  }

  void add(const Elements &of) {
    for (int64_t i = 0; i < of.rank; ++i)
      add(of.strides[i] * of.bytes, of.sizes[i]);
    add(1, of.bytes);
  }

  /// Whether indices give this sum; true as well where that takes too long.
  bool hasSum(int64_t sum) {
    std::sort(steps, steps + count, [](const Step &a, const Step &b) { return a.stride > b.stride; });
    for (int i = count; i-- > 0;) {
      reach[i] = reach[i + 1] + steps[i].stride * steps[i].most;
      divisor[i] = std::gcd(divisor[i + 1], steps[i].stride);
    }
    return find(0, sum);
  }

private:
  bool find(int from, int64_t sum) {
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
  static constexpr int kMostSteps = 2 * 8 + 2; ///< two ranks, and bytes of two elements
  Step steps[kMostSteps] = {};
  int64_t reach[kMostSteps + 1] = {}, divisor[kMostSteps + 1] = {}; ///< of this step and those after it
  int count = 0, tries = 0;
};

} // namespace

bool mayOverlap(const Elements &a, const Elements &b) {
  const Bytes first = bytesOf(a), second = bytesOf(b);
  if (first.begin == first.end || second.begin == second.end || first.end <= second.begin || second.end <= first.begin)
    return false;
  // begin + steps of a == other begin + steps of b, where the steps of b are counted down from its last byte
  Equation equation;
  equation.add(a);
  equation.add(b);
  return equation.hasSum(second.end - 1 - first.begin);
}

} // namespace fagen
