// fagen: many launches: the same one again and again, bit for bit, and random ones, none of which may hang.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "check.h"

#include <nlohmann/json.hpp>

namespace fagen::lab {

struct SoakReport;

/// The largest random problem; tensors of this size are in memory throughout.
struct SoakLimits {
  int64_t batch, heads, rows;
};

struct SoakOptions {
  std::vector<std::string> variants; ///< only these, when not empty
  std::vector<Case> cases;           ///< what is repeated, where one fits; else repeatedCase()
  int64_t repeats = 1000;            ///< of each variant
  int64_t launches = 100000;         ///< random ones, of all variants together
  double patience = 20;              ///< seconds without an end that count as a hang
  bool load = true;                  ///< keep the device busy with something else meanwhile
  uint64_t seed = 1;
  SoakLimits limits{3, 16, 700};
  Shape repeated{2, 12, 6, 1000, 1100, 0, 0}; ///< head dims are the variant's
  std::string deviceFlag;                     ///< as repro lines spell it
  /// Called when a launch hangs or has ended the context. On a GPU nothing can be released any more: whoever has the
  /// report in hand should write it and end the process.
  std::function<void(const SoakReport &report)> onDeviceLost = [](const SoakReport &) {};
};

/// One variant's part.
struct SoakedVariant {
  const KernelSet *set = nullptr;
  const fagen_row *row = nullptr;
  Case repeated;
  int64_t repeats = 0;   ///< that ran
  int64_t different = 0; ///< of them: other bits than the first
  int64_t firstDifferent = 0;
  int64_t launches = 0; ///< random ones that ended
  std::string digest;   ///< of the first result
  std::vector<Failure> failures;
  std::string again; ///< a command that shows the first failure
  double seconds = 0;
};

struct SoakReport {
  std::vector<SoakedVariant> variants;
  std::vector<Failure> failures; ///< of the whole
  int64_t skipped = 0;           ///< random problems that the drawn variant does not take
  bool loaded = false;           ///< something else ran meanwhile
  bool deviceLost = false;       ///< a launch hangs, or ended the context

  bool passed() const;
};

/// The case number `index` of a soak for this row: random lengths, many of them next to a tile's edge.
Case randomCase(const fagen_row &row, Case c, const SoakLimits &limits, uint64_t seed, uint32_t index);

SoakReport runSoak(const std::vector<std::unique_ptr<KernelSet>> &sets, TestDevice &device, ReferenceEngine &engine,
                   const SoakOptions &options, const Progress &progress);

std::string soakTable(const SoakReport &report);
std::string soakFailures(const SoakReport &report);
nlohmann::ordered_json soakJson(const SoakReport &report, const SoakOptions &options);

} // namespace fagen::lab
