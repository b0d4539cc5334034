// fagen: whether kernels may ship: stage by stage, each variant until it fails.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/check/check.h"
#include "lab/time/timing.h"

#include <array>

namespace fagen::lab {

/// In the order in which they are passed.
enum class Stage { Build, Resources, Launch, Sanity, Correctness, Determinism, Speed };
constexpr int kStages = 7;
std::string_view nameOf(Stage stage);

enum class Verdict {
  Pass,
  NotRequired, ///< the spec has no gate on it
  Fail,
  Skipped,   ///< cannot be judged here; `why` says for want of what
  NotReached ///< an earlier stage failed
};

struct StageResult {
  Verdict verdict = Verdict::NotReached;
  std::string why; ///< with numbers
};

struct GatedVariant {
  const KernelSet *set = nullptr;
  const fagen_row *row = nullptr;
  std::array<StageResult, kStages> stages;

  StageResult &at(Stage stage) { return stages[static_cast<size_t>(stage)]; }
  const StageResult &at(Stage stage) const { return stages[static_cast<size_t>(stage)]; }
  bool has(Verdict verdict) const;
  /// Sets the stage's verdict; a failure takes back what later stages were given.
  void judge(Stage stage, Verdict verdict, std::string why);
};

struct GateOptions {
  CheckOptions check;  ///< its suite, variants, seed and device flag count
  TimeOptions time;    ///< its shapes, state, L2, rounds and seed count
  bool strict = false; ///< a skipped stage counts as a failed one
};

struct GateReport {
  std::vector<GatedVariant> variants;
  TimeReport times;  ///< after the stage of speed
  TimeReport steady; ///< of gates on joules, where `times` are of bursts

  bool passed(const GateOptions &options) const;
};

/// What kernels are judged on. `timing` is null where nothing can be timed.
struct GateDevices {
  TestDevice &device;
  ReferenceEngine &engine;
  TimingDevice *timing = nullptr;
  uint32_t sm = 0; ///< of the GPU that `device` is; 0: the emulator
};

GateReport runGate(const std::vector<std::unique_ptr<KernelSet>> &sets, const GateDevices &devices,
                   const GateOptions &options, const Progress &progress);

/// The last stage, for the variants that have reached it. gate_speed.cpp.
void gateSpeed(const std::vector<std::unique_ptr<KernelSet>> &sets, const GateDevices &devices,
               const GateOptions &options, const Progress &progress, GateReport &report);

/// What `time` and fagen-run call a baseline of require: "fa2" is sdpa:flash.
std::string baselineOfGate(const std::string &name);

} // namespace fagen::lab
