// fagen: where a warp's time goes: clocks of each stage, and events of the first steps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/params.h>
#include <fagen/device/ptx/clock.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/trace.h>

namespace fagen::device {

__device__ __forceinline__ void store_wide(unsigned (&target)[2], unsigned long long value, ptx::Site site) {
  ptx::st_global_u32(&target[0], static_cast<unsigned>(value), site);
  ptx::st_global_u32(&target[1], static_cast<unsigned>(value >> 32), site);
}

/// Time goes to the stage whose end is told next, so nothing is left out and nothing counted twice. Lane i adds up
/// stage i: a sum and the last reading are all that a thread keeps. Without a workspace nothing is stored.
template <int kWarps, bool kTraces> class StageClock {
public:
  __device__ __forceinline__ void start(const AttentionParams &params, ptx::Site site = ptx::Site::here()) {
    const unsigned long long begin = ptx::clock64();
    last = static_cast<unsigned>(begin);
    sum = 0;
    marks = 0;
    if (params.workspace == nullptr || ptx::lane_index() != 0)
      return;
    WarpRecord &record = record_of_warp(params);
    store_wide(record.begin, begin, site);
    store_wide(record.begin_ns, ptx::global_nanoseconds(), site);
    ptx::st_global_u32(&record.sm, ptx::sm_index(), site);
  }

  /// The stage is over.
  __device__ __forceinline__ void mark(const AttentionParams &params, Stage stage, ptx::Site site = ptx::Site::here()) {
    const unsigned now = ptx::clock32();
    if (ptx::lane_index() == static_cast<int>(stage))
      sum += now - last;
    last = now;
    if constexpr (kTraces) {
      if (marks < kTraceEvents && ptx::cta_index() < kTracedCtas && params.workspace != nullptr &&
          ptx::lane_index() == 0) {
        StageEvent &event = event_of_warp(params, marks);
        ptx::st_global_u32(&event.clock, now, site);
        ptx::st_global_u32(&event.stage, static_cast<unsigned>(stage), site);
      }
      ++marks;
    }
  }

  __device__ __forceinline__ void stop(const AttentionParams &params, ptx::Site site = ptx::Site::here()) {
    const unsigned long long end = ptx::clock64();
    if (params.workspace == nullptr)
      return;
    WarpRecord &record = record_of_warp(params);
    if (ptx::lane_index() < kRecordStages)
      ptx::st_global_u32(&record.clocks[ptx::lane_index()], sum, site);
    if (ptx::lane_index() != 0)
      return;
    store_wide(record.end, end, site);
    store_wide(record.end_ns, ptx::global_nanoseconds(), site);
    ptx::st_global_u32(&record.marks, marks, site);
  }

private:
  __device__ __forceinline__ static long long warp_of_grid() {
    return static_cast<long long>(ptx::cta_index()) * kWarps + ptx::warp_index();
  }
  __device__ __forceinline__ static WarpRecord &record_of_warp(const AttentionParams &params) {
    char *records = static_cast<char *>(params.workspace) + (kTraces ? trace_bytes(kWarps) : 0);
    return reinterpret_cast<WarpRecord *>(records)[warp_of_grid()];
  }
  __device__ __forceinline__ static StageEvent &event_of_warp(const AttentionParams &params, unsigned index) {
    return static_cast<StageEvent *>(params.workspace)[warp_of_grid() * kTraceEvents + index];
  }

  unsigned sum, last, marks;
};

} // namespace fagen::device
