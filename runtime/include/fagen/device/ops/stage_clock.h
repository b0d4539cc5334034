// fagen: where a warp's time goes: clocks of each stage, and events of the first steps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/params.h>
#include <fagen/device/ptx/clock.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/tile/rows.h>
#include <fagen/device/trace.h>

namespace fagen::device {

/// Where records of a program's kernel lie, in the place of attention's parameters.
struct ClockRecords {
  void *workspace;
};

/// Where the record of a warp of this CTA lies, kBefore bytes from the begin of the workspace, and its events.
template <int kWarps, bool kTraces, int kBefore> struct RecordPlace {
  __device__ __forceinline__ static long long warp_of_grid() {
    return static_cast<long long>(ptx::cta_index()) * kWarps + ptx::warp_index();
  }
  template <class Params> __device__ __forceinline__ static unsigned *record(const Params &params) {
    char *records = static_cast<char *>(params.workspace) + kBefore + (kTraces ? trace_bytes(kWarps) : 0);
    return reinterpret_cast<unsigned *>(records) + warp_of_grid() * kRecordWords;
  }
  template <class Params>
  __device__ __forceinline__ static void keep_event(const Params &params, unsigned index, Stage stage, unsigned clock,
                                                    ptx::Site site) {
    if (index >= kTraceEvents || ptx::cta_index() >= kTracedCtas || params.workspace == nullptr)
      return;
    StageEvent *events = reinterpret_cast<StageEvent *>(static_cast<char *>(params.workspace) + kBefore);
    StageEvent &event = events[warp_of_grid() * kTraceEvents + index];
    ptx::st_global_u32(&event.clock, clock, site);
    ptx::st_global_u32(&event.stage, static_cast<unsigned>(stage), site);
  }
};

/// What lies before the workspace and the records of as many CTAs as there are tiles of query rows take of it.
template <int kTileRows, Rows kRows, int kWarps, bool kTraces, int kBefore = 0>
__device__ __forceinline__ long long record_bytes(const AttentionParams &params) {
  const int tiles = (row_count<kRows>(params) + kTileRows - 1) / kTileRows * tile_heads<kRows>(params) * params.batch;
  return kBefore + (kTraces ? trace_bytes(kWarps) : 0) +
         static_cast<long long>(tiles) * kWarps * static_cast<long long>(sizeof(WarpRecord));
}

/// Time goes to the stage whose end is told next, so nothing is left out and nothing counted twice. Each lane keeps one
/// word of the warp's record, so that a stage's sum and the last reading are all that a thread keeps, and the record is
/// stored at once. Without a workspace nothing is stored.
template <int kWarps, bool kTraces, int kBefore = 0> class StageClock {
  using Place = RecordPlace<kWarps, kTraces, kBefore>;

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
  template <class Params>
  __device__ __forceinline__ void mark(const Params &params, Stage stage, ptx::Site site = ptx::Site::here()) {
    const unsigned now = book(static_cast<int>(stage));
    if constexpr (kTraces) {
      if (ptx::lane_index() == 0)
        Place::keep_event(params, marks, stage, now, site);
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

  /// Work on another tile of query rows begins.
  __device__ __forceinline__ void count_tile() {
    if (is_lane(WarpWord::kClocks, kTilesSum))
      ++word;
  }

  template <class Params>
  __device__ __forceinline__ void stop(const Params &params, ptx::Site site = ptx::Site::here()) {
    put(WarpWord::kEnd, ptx::clock64());
    put(WarpWord::kSm, ptx::sm_index());
    if constexpr (kTraces) {
      put(WarpWord::kEndNs, ptx::global_nanoseconds());
      put(WarpWord::kMarks, marks);
    }
    if (params.workspace != nullptr)
      ptx::st_global_u32(Place::record(params) + ptx::lane_index(), word, site);
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

  unsigned word, last, marks;
};

/// The same of one thread, which loads for all others: it keeps the sums itself.
template <int kWarps, bool kTraces, int kBefore = 0> class ThreadClock {
  using Place = RecordPlace<kWarps, kTraces, kBefore>;

public:
  __device__ __forceinline__ void start() {
    begin = ptx::clock64();
    last = static_cast<unsigned>(begin);
    if constexpr (kTraces)
      begin_ns = ptx::global_nanoseconds();
  }

  template <class Params>
  __device__ __forceinline__ void mark(const Params &params, Stage stage, ptx::Site site = ptx::Site::here()) {
    const unsigned now = ptx::clock32();
    sums[static_cast<int>(stage)] += now - last;
    last = now;
    if constexpr (kTraces)
      Place::keep_event(params, marks++, stage, now, site);
  }

  __device__ __forceinline__ void count_tile() { ++tiles; }

  template <class Params>
  __device__ __forceinline__ void stop(const Params &params, ptx::Site site = ptx::Site::here()) {
    if (params.workspace == nullptr)
      return;
    put(params, WarpWord::kBegin, begin, site);
    put(params, WarpWord::kEnd, ptx::clock64(), site);
    put(params, WarpWord::kBeginNs, begin_ns, site);
    put(params, WarpWord::kEndNs, kTraces ? ptx::global_nanoseconds() : 0, site);
    unsigned *record = Place::record(params);
    ptx::st_global_u32(record + static_cast<int>(WarpWord::kSm), ptx::sm_index() | kLoads, site);
    ptx::st_global_u32(record + static_cast<int>(WarpWord::kMarks), marks, site);
    unsigned *clocks = record + static_cast<int>(WarpWord::kClocks);
#pragma unroll
    for (int sum = 0; sum < kRecordSums; ++sum)
      ptx::st_global_u32(clocks + sum, sum < kStageCount ? sums[sum] : sum == kTilesSum ? tiles : 0, site);
  }

private:
  template <class Params>
  __device__ __forceinline__ static void put(const Params &params, WarpWord first, unsigned long long value,
                                             ptx::Site site) {
    unsigned *words = Place::record(params) + static_cast<int>(first);
    ptx::st_global_u32(words, static_cast<unsigned>(value), site);
    ptx::st_global_u32(words + 1, static_cast<unsigned>(value >> 32), site);
  }

  unsigned long long begin = 0, begin_ns = 0;
  unsigned last = 0, marks = 0, tiles = 0;
  unsigned sums[kStageCount] = {};
};

} // namespace fagen::device
