// fagen: what an instrumented kernel writes into its workspace; shared by compiler, kernels and laboratory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that also trace begin it with kTraceEvents StageEvents of each warp of the first kTracedCtas CTAs. Then a
// WarpRecord of each warp of each CTA follows, in the order of CTAs. Where CTAs draw their tiles, the counter for that
// comes first, and kRecordAlignment bytes from the begin what else there is.
#pragma once

namespace fagen::device {

/// What a warp can be at. Emit/Stages.cpp of the compiler says which op belongs to which.
enum class Stage : int {
  kPrologue,
  kCopyIssue,
  kLoadWait,
  kBarrierWait,
  kQk,
  kMask,
  kSoftmax,
  kRescale,
  kPv,
  kEpilogue
};
inline constexpr int kStageCount = 10;

/// As tables and traces spell them.
inline constexpr const char *kStageNames[kStageCount] = {
    "prologue", "copy issue", "load wait", "barrier wait", "QK", "mask", "softmax", "rescale", "PV", "epilogue"};

/// A sampled loop tells its waits in each step, what is between them only in one step of kSampleEvery: telling parts
/// what the compiler interleaves. Of a warp's sums, i is of stage i as told everywhere else, kStageCount + i of stage i
/// in the sampled steps, kUntoldSum of what the other steps did between their waits.
inline constexpr int kSampleEvery = 16, kFirstSample = 2;
inline constexpr int kUntoldSum = 2 * kStageCount;
/// Tiles of query rows that the warp worked on, where CTAs take one after the other; else 0.
inline constexpr int kTilesSum = kUntoldSum + 1;
inline constexpr int kRecordSums = 22;

/// Of a warp whose first thread loads for all others; the warps next to it leave no record.
inline constexpr unsigned kLoads = 1u << 31;

/// One warp's life. Words of 64 bits are two of 32, low first. A warp that never ran left zeros.
struct WarpRecord {
  unsigned begin[2], end[2];       ///< SM clock
  unsigned begin_ns[2], end_ns[2]; ///< the GPU's time, which all SMs share, where events are traced; else 0
  unsigned sm;                     ///< where it ran; and kLoads
  unsigned marks;                  ///< ends of stages that it told, where events are traced; else 0
  unsigned clocks[kRecordSums];
};

/// Where each begins in a record; lane i keeps word i.
enum class WarpWord : int { kBegin = 0, kEnd = 2, kBeginNs = 4, kEndNs = 6, kSm = 8, kMarks = 9, kClocks = 10 };
inline constexpr int kRecordWords = 32;

/// The end of a stage; it began where the one before ended, the first one with the warp.
struct StageEvent {
  unsigned clock; ///< low half of the SM clock
  unsigned stage;
};

inline constexpr int kTracedCtas = 8;
inline constexpr int kTraceEvents = 512; ///< of a warp

inline constexpr int kRecordAlignment = 128;
static_assert(sizeof(WarpRecord) == kRecordAlignment, "records follow each other without gaps");
static_assert(sizeof(WarpRecord) == kRecordWords * sizeof(unsigned), "each lane keeps a word");
static_assert(kTilesSum < kRecordSums, "each sum has a word");

/// Bytes of the events of a kernel that traces.
constexpr long long trace_bytes(int warps) {
  return static_cast<long long>(kTracedCtas) * warps * kTraceEvents * static_cast<int>(sizeof(StageEvent));
}

} // namespace fagen::device
