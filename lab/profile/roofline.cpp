// fagen: the least work of an attention problem, and a GPU's least time for it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "roofline.h"

#include "fagen/Target/Gpus.h"

#include <algorithm>

namespace fagen::lab {

LeastWork leastWork(const Shape &s, Mask mask, bool lse) {
  constexpr double kElement = 2, kLseElement = 4; // bytes
  int64_t pairs = 0, keys = 0;                    // of one head; keys: those that some row sees
  for (int64_t row = 0; row < s.seqQ; ++row) {
    int64_t visible = visibleKeys(s, mask, row);
    pairs += visible;
    keys = std::max(keys, visible);
  }
  const double heads = static_cast<double>(s.batch * s.heads), kvHeads = static_cast<double>(s.batch * s.kvHeads);
  const double columns = static_cast<double>(s.headDimQK + s.headDimV);
  LeastWork work;
  work.exps = heads * static_cast<double>(pairs);
  work.flops = 2 * columns * work.exps;
  work.bytes = kElement * columns * (heads * static_cast<double>(s.seqQ) + kvHeads * static_cast<double>(keys));
  if (lse)
    work.bytes += kLseElement * static_cast<double>(s.rows());
  return work;
}

Peaks peaksOf(uint32_t computeCapability, int sms, double clockHz, double dramBytesPerSecond) {
  Peaks peaks;
  peaks.dramBytes = dramBytesPerSecond;
  if (const GpuRates *rates = ratesOf(computeCapability)) {
    peaks.tensorFlops = rates->tensorFlops * sms * clockHz;
    peaks.exps = rates->exps * sms * clockHz;
  }
  return peaks;
}

double Roofline::floorMicroseconds() const { return std::max({tensorMicroseconds, expMicroseconds, dramMicroseconds}); }

std::string Roofline::limit() const {
  double floor = floorMicroseconds();
  if (floor <= 0)
    return "";
  return floor == tensorMicroseconds ? "tensor" : floor == expMicroseconds ? "exp" : "dram";
}

Roofline rooflineOf(const LeastWork &work, const Peaks &peaks) {
  auto microseconds = [](double amount, double perSecond) { return perSecond > 0 ? amount / perSecond * 1e6 : 0; };
  return {microseconds(work.flops, peaks.tensorFlops), microseconds(work.exps, peaks.exps),
          microseconds(work.bytes, peaks.dramBytes)};
}

} // namespace fagen::lab
