// fagen: a place in a spec, kept by every IR op and cited by generated code.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/SMLoc.h"

#include <string>

namespace fagen {

/// A spec location: `file` is the base name (generated text must not depend on directories); line and column count
/// from 1, 0 means unknown. `source` points into the SourceMgr's buffer while that lives, for caret diagnostics.
struct Location {
  std::string file;
  unsigned line = 0;
  unsigned column = 0;
  llvm::SMLoc source;

  bool isKnown() const { return line != 0; }
  /// "l4_fp16.fa:17", or "<unknown>".
  std::string str() const { return isKnown() ? file + ":" + std::to_string(line) : std::string("<unknown>"); }
};

} // namespace fagen
