// fagen: JSON values as text, appended to a longer one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/Support/JSON.h"

namespace fagen {

/// Indented by two a level, objects in the order of their keys: as llvm::json::OStream writes it in a line that begins
/// at `column`, but without a stream in between.
void appendJson(std::string &text, const llvm::json::Value &value, unsigned column);

} // namespace fagen
