// fagen: where the time of a launch goes: what an instrumented kernel's warps left, and its summary by stage.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/device/case_memory.h"

#include <fagen/device/trace.h>

#include <array>
#include <optional>

namespace fagen::lab {

using device::kStageCount;

/// One warp's life in clocks of its SM.
struct WarpTimes {
  int64_t cta = 0;
  int warp = 0;
  unsigned sm = 0;
  bool loads = false; ///< its first thread does, for all others
  uint64_t tiles = 0; ///< of query rows, where CTAs take one after the other; else 0
  uint64_t begin = 0, end = 0, beginNs = 0, endNs = 0;
  std::array<uint64_t, kStageCount> clocks{};  ///< by stage, without those of sampled steps
  std::array<uint64_t, kStageCount> sampled{}; ///< by stage, between the waits of the steps that told
  uint64_t untold = 0;                         ///< between the waits of the other steps
  uint64_t marks = 0;                          ///< ends of stages; more than `events` when these ran out
  std::vector<device::StageEvent> events;      ///< of a traced warp

  uint64_t span() const { return end - begin; }
  /// As counted; nothing is estimated.
  uint64_t sum() const;
  /// By stage; untold clocks are shared out as those of the sampled steps are, and are the last where none was.
  std::array<double, kStageCount + 1> byStage() const;
};

/// What clocks of no known stage are called.
inline constexpr const char *kUntoldName = "untold steps";

/// Over the warps.
struct Spread {
  double median = 0, min = 0, max = 0;
};

struct StageSummary {
  std::string name;
  Spread clocks;
  Spread share;       ///< of the warp's span
  double perTile = 0; ///< clocks of a warp for each of its tiles, the median; 0 where they are not counted
};

/// How far a warp's sum may be from its span, over the span.
inline constexpr double kSumTolerance = 0.05;
/// What the timestamps may cost, over the plain kernel's time.
inline constexpr double kCostLimit = 0.10;

/// One instrumented kernel on one problem.
struct Breakdown {
  const KernelSet *set = nullptr;
  const fagen_row *row = nullptr;
  Case testCase;
  std::vector<WarpTimes> warps;
  std::vector<Failure> failures; ///< the launch's, and records that make no sense

  /// One for each role: all warps, where all do the same; else those that compute, and after them those that load.
  std::vector<Breakdown> byRole() const;
  const char *role() const; ///< of the first warp: "warps", "math warps", "load warps"
  Spread tiles() const;     ///< of a warp
  bool hasTiles() const { return tiles().max > 0; }
  bool isOneOfRoles = false;

  std::vector<StageSummary> stages() const; ///< those that any warp was in
  Spread span() const;                      ///< clocks
  Spread untold() const;                    ///< over the span; 0 where every step told
  Spread sumOverSpan() const;
  bool addsUp() const;      ///< within kSumTolerance for each warp
  double megahertz() const; ///< of the SMs, by the GPU's time; 0: not traced, or too short to tell
};

/// Whether the row's kernel leaves records; with `events` whether it also traces.
bool isInstrumented(const fagen_row &row, bool events = false);

/// A WarpRecord; what cannot be true is a failure, and nothing is given.
std::optional<WarpTimes> readRecord(const void *record, int64_t cta, int warp, std::vector<Failure> &failures);

/// What that many CTAs left in the workspace of an instrumented row, by <fagen/device/trace.h>. A warp that left
/// nothing, though it should, or that was at work for 2^32 clocks or more, is a failure.
std::vector<WarpTimes> readTrace(const fagen_row &row, int64_t ctas, const std::vector<char> &workspace,
                                 std::vector<Failure> &failures);

/// Launches the row `warmups` times, and then once more for the figures.
Breakdown runBreakdown(TestDevice &device, const KernelSet &set, const fagen_row &row, const Case &c, uint64_t seed,
                       int warmups);

} // namespace fagen::lab
