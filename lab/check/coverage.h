// fagen: which ops of the emitted kernels ran under the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/device/device.h"
#include "lab/support/text_table.h"

#include <set>

namespace fagen::lab {

/// Collects the lines that ran, launch by launch, and compares them with the manifest's ops. Ops that neither touch
/// memory nor meet other threads leave no trace in the emulator, so they count only where they were seen.
class OpCoverage {
public:
  /// Hooks for makeEmulatorDevice(), which must not outlive this.
  EmulatorHooks hooks();

  /// A row for each kernel: how many of its ops ran, and the lines of those that did not.
  std::string table() const;
  Json json() const;

private:
  struct Kernel {
    const KernelSet *set;
    const fagen_row *row;
    uint32_t launch;
    std::set<int> lines; ///< that ran
  };
  /// The ops of a kernel that must run, and those of them that did not.
  struct Result {
    size_t ops = 0;
    std::vector<const OpLine *> missed;
  };
  static Result resultOf(const Kernel &kernel);

  std::vector<Kernel> kernels; ///< in the order of their first launch
};

} // namespace fagen::lab
