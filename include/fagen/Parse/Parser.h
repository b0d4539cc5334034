// fagen: tokens of a spec to its AST.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Parse/AST.h"
#include "fagen/Support/Diagnostics.h"

namespace fagen {

/// Parses a whole file. Always returns what could be understood: after a mistake parsing goes on after the next `;`,
/// so that one run reports all of them. Whether there were mistakes is diags.hasErrors().
ast::File parseSpec(llvm::StringRef text, Diagnostics &diags);

} // namespace fagen
