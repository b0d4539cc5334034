// fagen: the part of the device library that some kernels use, as one text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <set>
#include <string>
#include <vector>

namespace fagen {

/// The declarations of the device library that these texts reach, each header's after those that it includes. Their
/// constexpr functions are marked for host and device, so that no option of nvcc is needed. Of instructions that differ
/// in a product's columns only, those of `columns` are taken.
std::string pickDeviceText(llvm::ArrayRef<std::string> texts, llvm::ArrayRef<llvm::StringRef> includes,
                           const std::set<unsigned> &columns);

/// The headers that a text includes: "fagen/device/ops/mma.h".
std::vector<llvm::StringRef> deviceIncludesOf(llvm::StringRef text);

/// The text with its constexpr functions marked for host and device.
std::string markConstexpr(llvm::StringRef text);

} // namespace fagen
