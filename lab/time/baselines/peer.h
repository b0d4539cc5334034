// fagen: times kernels and PyTorch, in one Python process on the same tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/time/timing.h"

namespace fagen::lab {

/// Runs measure/compare_sdpa.py, which calls our C ABI, on the problems and adds what it measured to the report.
/// UserError with what is missing (python3, the script, PyTorch) or with what the process said when it failed.
///
/// FAGEN_PYTHON names another interpreter, FAGEN_PEER another script, FAGEN_CAPI another libfagen_capi.so.
void runPeer(const std::vector<std::unique_ptr<KernelSet>> &sets, const std::vector<Case> &problems,
             const std::vector<std::string> &baselines, const TimeOptions &options, const TimeProgress &progress,
             TimeReport &report);

} // namespace fagen::lab
