// fagen: where a warp's time goes: clocks of each stage, and events of the first steps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/params.h>
#include <fagen/device/ptx/clock.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/trace.h>

namespace fagen::device {

/// Time goes to the stage whose end is told next, so nothing is left out and nothing counted twice. Each lane keeps one
/// word of the warp's record, so that a stage's sum and the last reading are all that a thread keeps, and the record is
/// stored at once. Without a workspace nothing is stored.
template <int kWarps, bool kTraces> class StageClock {
public:
  __device__ __forceinline__ void start() {
    const unsigned long long begin = ptx::clock64();
    last = static_cast<unsigned>(begin);
    word = 0;
    marks = 0;
    put(WarpWord::kBegin, begin);
    if constexpr (kTraces) // a read of the GPU's time takes tenths of a microsecond
      put(WarpWord::kBeginNs, ptx::global_nanoseconds());
  }

  /// Whether this step of a sampled loop is one that tells.
  __device__ __forceinline__ static bool samples(int step) { return step % kSampleEvery == kFirstSample; }

  /// The stage is over.
  __device__ __forceinline__ void mark(const AttentionParams &params, Stage stage, ptx::Site site = ptx::Site::here()) {
    const unsigned now = book(static_cast<int>(stage));
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

  /// The stage is over in a step of a sampled loop.
  template <bool kSampled> __device__ __forceinline__ void sample(Stage stage) {
    if constexpr (kSampled)
      book(kStageCount + static_cast<int>(stage));
  }

  /// Likewise, and a wait follows, which each step tells.
  template <bool kSampled> __device__ __forceinline__ void sample_before_wait(Stage stage) {
    book(kSampled ? kStageCount + static_cast<int>(stage) : kUntoldSum);
  }

  __device__ __forceinline__ void stop(const AttentionParams &params, ptx::Site site = ptx::Site::here()) {
    put(WarpWord::kEnd, ptx::clock64());
    put(WarpWord::kSm, ptx::sm_index());
    if constexpr (kTraces) {
      put(WarpWord::kEndNs, ptx::global_nanoseconds());
      put(WarpWord::kMarks, marks);
    }
    if (params.workspace != nullptr)
      ptx::st_global_u32(word_of_record(params), word, site);
  }

private:
  __device__ __forceinline__ static bool is_lane(WarpWord first, int index) {
    return ptx::lane_index() == static_cast<int>(first) + index;
  }
  __device__ __forceinline__ void put(WarpWord first, unsigned value) {
    if (is_lane(first, 0))
      word = value;
  }
  __device__ __forceinline__ void put(WarpWord first, unsigned long long value) {
    if (is_lane(first, 0))
      word = static_cast<unsigned>(value);
    if (is_lane(first, 1))
      word = static_cast<unsigned>(value >> 32);
  }
  /// The time since the last reading goes to a sum; gives the reading.
  __device__ __forceinline__ unsigned book(int sum) {
    const unsigned now = ptx::clock32();
    if (is_lane(WarpWord::kClocks, sum))
      word += now - last;
    last = now;
    return now;
  }
  __device__ __forceinline__ static long long warp_of_grid() {
    return static_cast<long long>(ptx::cta_index()) * kWarps + ptx::warp_index();
  }
  __device__ __forceinline__ static unsigned *word_of_record(const AttentionParams &params) {
    char *records = static_cast<char *>(params.workspace) + (kTraces ? trace_bytes(kWarps) : 0);
    return reinterpret_cast<unsigned *>(records) + warp_of_grid() * kRecordWords + ptx::lane_index();
  }
  __device__ __forceinline__ static StageEvent &event_of_warp(const AttentionParams &params, unsigned index) {
    return static_cast<StageEvent *>(params.workspace)[warp_of_grid() * kTraceEvents + index];
  }

  unsigned word, last, marks;
};

} // namespace fagen::device
