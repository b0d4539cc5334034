// fagen: a spec in its canonical layout.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two blanks a level; a statement a line; `=` of a block below each other, and so relations of a require; at most one
// empty line. A block that was written in one line stays in one where it fits in 120 columns. Comments stay: on lines
// of their own, or after what they stood after, below each other on neighbouring lines.
#pragma once

#include "fagen/Support/Diagnostics.h"

#include <optional>
#include <string>

namespace fagen {

/// The text of a spec that parses, laid out; a buffer of the diagnostics' sources holds it. It has the same tokens and
/// comments in the same order, and is laid out as it is. Nothing after a reported mistake of the spec; what it means is
/// not looked at.
std::optional<std::string> formatSpec(llvm::StringRef text, Diagnostics &diags);

} // namespace fagen
