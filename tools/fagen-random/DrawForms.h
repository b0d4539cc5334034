// fagen: specs with random forms: several in one text, on small kernels of one instruction family.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "Random.h"
#include "fagen/Target/Target.h"

#include <string>

namespace fagen::random {

/// Forms whose scores stay where f32 is good for something, with masks of every kind: linear ones, divisions, reads
/// that ascend or do not, bits. For this target, or any of sm_89 and sm_90a.
std::string drawFormsSpec(Random &random, const TargetInfo *target);

} // namespace fagen::random
