// fagen: words that are no names in C++ text, or for callers in Python.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/StringRef.h"

namespace fagen {

/// Whether `name` is one of the words, each of which is followed by a space.
bool isAmong(llvm::StringRef words, llvm::StringRef name);

/// Whether a header that nvcc includes before every text has a macro of that name: "NULL", "M_PI"; and those of fagen.
bool isHeaderMacro(llvm::StringRef name);

/// Of Python 3.
bool isPythonKeyword(llvm::StringRef name);

} // namespace fagen
