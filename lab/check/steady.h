// fagen: problems that take every loop of a row's kernels into its steady state.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/cases/cases.h"
#include "lab/kernel_set/manifest.h"

namespace fagen::lab {

/// A few small problems of the row's dtype, mask and head dimensions; on `device`
///  - a tile of rows takes so many key tiles that each ring goes round at least twice, and no fewer than six: once on
///    normal inputs, once on inputs whose maximum rises from step to step, with a part of a key tile after;
///  - it takes two or three, where the maximum of each is far above that of the one before;
///  - so does each split, where keys are split by their number;
///  - a CTA of a persistent grid takes at least three tiles of one or two key tiles, three that fill its ring exactly,
///    and two long ones;
///  - a form's integers are above all lengths; and then next to edges of tiles, in problems of their own (edges.h);
///  - there are six heads, on three K/V heads, and three batches, or more.
/// They depend on the row's schedule and the device's number of SMs. The row need not run on the device.
std::vector<Case> steadyCases(const KernelSet &set, const fagen_row &row, const fagen_device *device);

} // namespace fagen::lab
