// fagen: CTAs that count themselves in global memory; the last one reads what all stored.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/ptx/barrier.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/shuffle.h>
#include <fagen/device/ptx/threads.h>

using namespace fagen::device;

struct Arguments {
  const void *in;
  void *out;
  int count; ///< what is left out
};

enum Omission {
  kBarrierBefore = 1,
  kFenceBefore = 2,
  kFenceBehind = 4,
  kBarrierBehind = 8,
  kLastOne = 16,   ///< waits for all others but one
  kOwnCounter = 32 ///< each CTA counts at a place of its own
};

// Words of out: 32 sums, counters, and from kParts on two for each lane of each CTA.
constexpr int kCounter = 32, kParts = 64;

extern "C" __global__ void merge(const __grid_constant__ Arguments arguments) {
  const int omitted = arguments.count, ctas = ptx::cta_count();
  float *const out = static_cast<float *>(arguments.out), *const parts = out + kParts + 2 * ptx::lane_index();
  const float part[2] = {static_cast<float>(ptx::cta_index()), 1.0f};
  ptx::st_global_f32(parts + 64 * ptx::cta_index(), part);
  if (!(omitted & kBarrierBefore))
    ptx::warp_barrier();
  bool is_last = false;
  if (ptx::lane_index() == 0) {
    if (!(omitted & kFenceBefore))
      ptx::fence_device();
    unsigned *const counter =
        reinterpret_cast<unsigned *>(out) + kCounter + (omitted & kOwnCounter ? ptx::cta_index() : 0);
    const int before = static_cast<int>(ptx::atomic_inc(counter, 1u << 31));
    is_last = omitted & kOwnCounter ? ptx::cta_index() == ctas - 1 : before == ctas - (omitted & kLastOne ? 2 : 1);
    if (!(omitted & kFenceBehind))
      ptx::fence_device();
  }
  is_last = ptx::any(is_last);
  if (!(omitted & kBarrierBehind))
    ptx::warp_barrier();
  if (!is_last)
    return;
  float sum = 0.0f;
  for (int cta = 0; cta < ctas; ++cta) {
    float read[2];
    ptx::ld_global_f32(read, out + kParts + 2 * (ptx::lane_index() ^ 1) + 64 * cta); // another lane's
    sum += read[0] + read[1];
  }
  ptx::st_global_f32(out + ptx::lane_index(), sum);
}
