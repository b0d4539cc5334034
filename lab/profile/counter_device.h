// fagen: where hardware counters come from: a GPU, or a record of what one counted.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything above this interface (verdicts, rooflines, comparisons) is the same code on both.
#pragma once

#include "lab/cases/abi.h"
#include "lab/cases/cases.h"
#include "lab/kernel_set/manifest.h"
#include "metrics.h"

#include <filesystem>
#include <memory>
#include <stdexcept>

namespace fagen::lab {

/// This source cannot count here; another one may.
struct CountersRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A row of a kernel set on a problem.
struct ProfiledRow {
  const KernelSet *set = nullptr;
  const fagen_row *row = nullptr;
  fagen_choice choice = makeAbi<fagen_choice>();
  Case problem;
  uint64_t seed = 1;
};

enum class CounterKind { Cupti, Ncu };
/// "cupti", "ncu"
std::string nameOf(CounterKind kind);

/// What one source counted of one launch.
struct Reading {
  CounterKind kind = CounterKind::Cupti;
  std::string by; ///< "CUPTI 13.0, 42 passes"
  Counters counters;
};

class CounterDevice {
public:
  virtual ~CounterDevice() = default;
  virtual std::string name() const = 0;
  virtual uint32_t computeCapability() const = 0;
  virtual int sms() const = 0;
  /// For fagen_query.
  virtual fagen_device *queryDevice() = 0;
  /// Counts one launch of the row, after some that warm it up. CountersRefused with the reason.
  virtual Reading count(CounterKind kind, const ProfiledRow &row, const std::vector<std::string> &metrics) = 0;
  /// Launches the row so often, counting nothing: for a profiler around this process.
  virtual void launch(const ProfiledRow &row, int launches) = 0;
  /// For the description of the machine; null where there is none.
  virtual const class Gpu *gpu() const { return nullptr; }
};

/// Launches before the one that is counted.
inline constexpr int kProfileWarmups = 3;

/// Where CUPTI counts: a process of its own may crash.
enum class CuptiPlace { Process, Here };

/// The first GPU. `logFile` gets each call of CUPTI and its status; empty: none. UserError when there is no GPU.
std::unique_ptr<CounterDevice> makeGpuCounters(const std::filesystem::path &logFile, CuptiPlace place);

/// The file is what `fagen-run profile --output` writes; only these parts are read:
///   {"device": {"name": "recorded H200", "compute_capability": 90, "sms": 132},
///    "profile": [{"variant": "l4_fp16_short_f16_d64_none", "shape": "mission", "mask": "none", "dtype": "f16",
///                 "readings": [{"source": "cupti", "by": "CUPTI 13.0, 42 passes", "counters": {METRIC: VALUE, ...}}],
///                 "refused": {"ncu": "the reason"}}, ...]}
/// With "ncu": "process" ncu runs as on a GPU (FAGEN_NCU can name a stand-in), and so with "cupti" (FAGEN_PROFILER).
/// UserError when the file says something else.
std::unique_ptr<CounterDevice> makeRecordedCounters(const std::filesystem::path &file,
                                                    const std::filesystem::path &logFile);

} // namespace fagen::lab
