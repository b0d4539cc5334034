// fagen: --tuned: measured times from a tuner's database or its export.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Spec/Tuned.h"

#include <optional>

namespace fagen {

/// Nothing after a reported mistake.
std::optional<std::vector<TunedStudy>> readTuned(const std::string &path, Diagnostics &diags);

/// A warning when the kernel's times were taken with other text of its spec.
void warnOfOtherText(const KernelSpec &kernel, llvm::StringRef text, llvm::ArrayRef<std::string> targets,
                     llvm::ArrayRef<TunedStudy> studies, Diagnostics &diags);

} // namespace fagen
