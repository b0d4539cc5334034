// fagen: what the text calls what it makes of buffers and roles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/StringRef.h"

#include <string>

namespace fagen::ir {

/// The type of a shared buffer: "keys_of_step": KeysOfStepTile.
std::string typeOfTile(llvm::StringRef buffer);

/// The type of a role's registers: "load": LoadRegisters.
std::string typeOfRegisters(llvm::StringRef role);

/// The member that holds the strides of a tensor: "q": q_stride.
std::string membersOfStrides(llvm::StringRef param);

/// The param of the counter that fetch-tiles adds.
llvm::StringRef counterParam();
inline bool isCounterParam(llvm::StringRef param) { return param == counterParam(); }

} // namespace fagen::ir
