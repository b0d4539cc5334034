// fagen: the one argument of a row's kernels, made for each call.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/params.h>
#include <fagen/fagen.h>
#include <fagen/table.h>

namespace fagen {

/// The problem's sizes, these tensors and this workspace; what follows from the row's tile. The maps are left out: a
/// GPU's driver encodes them, the emulator reads their descriptions (maps.h). The problem has query rows and heads.
device::MappedAttentionParams argumentsOf(const fagen_row &row, const device::AttentionParams &problem,
                                          const fagen_tensors &tensors, void *workspace);

} // namespace fagen
