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

/// What kernels are given: those of a form read both parts (device/form.h), all others the first.
struct LaunchArgument {
  device::MappedAttentionParams params;
  alignas(8) unsigned char form[FAGEN_MAX_FORM_BYTES];
};

/// The form's part: what the query left of the problem's args, with these tensors' data. Nothing where the row is for
/// no form. INVALID, MISALIGNED.
fagen_status setForm(const fagen_choice &choice, const fagen_tensors &tensors, LaunchArgument &argument);

/// How many bytes kernels of the choice read.
size_t argumentBytes(const fagen_choice &choice);

} // namespace fagen
