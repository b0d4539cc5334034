// fagen: arguments of a command line that its options do not take.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Support/Diagnostics.h"

namespace fagen {

/// Reports what is unknown, without its value, missing or too many, by the options that are registered;
/// values are not looked at. Nothing is reported of a command line that asks for help.
void checkArguments(llvm::ArrayRef<char *> arguments, Diagnostics &diags);

} // namespace fagen
