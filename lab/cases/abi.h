// fagen: structs of the C ABI, filled in as their INIT macros do but without their compiler warnings.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/fagen.h>

namespace fagen::lab {

template <typename Struct> Struct makeAbi() {
  Struct value{};
  value.struct_size = sizeof(Struct);
  value.abi = FAGEN_ABI;
  return value;
}

} // namespace fagen::lab
