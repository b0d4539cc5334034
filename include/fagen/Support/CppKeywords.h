// fagen: names that generated C++ could not use.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/StringRef.h"

namespace fagen {

bool isCppKeyword(llvm::StringRef name);

} // namespace fagen
