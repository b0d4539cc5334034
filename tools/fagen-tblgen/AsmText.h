// fagen: pieces of inline assembly that the emitters of device functions share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace fagen::tblgen {

/// Of a line, at most.
inline constexpr size_t kColumns = 120;

/// {%4, %5, %6, %7}: `count` operands of the asm from number `first` on.
std::string operandList(int64_t first, int64_t count);

/// "+f"(d[0]), "+f"(d[1]): the elements of an array, each with its constraint.
std::vector<std::string> constraints(llvm::StringRef constraint, llvm::StringRef array, int64_t count);

/// A colon and the list, in lines of at most 120 columns, then `end`, as clang-format leaves them.
void emitList(llvm::raw_ostream &os, size_t indent, const std::vector<std::string> &list, llvm::StringRef end = "");

/// `text`, which has blanks, as string literals on lines of their own of at most 120 columns, each indented; the first
/// one is indented already.
void emitLiterals(llvm::raw_ostream &os, size_t indent, llvm::StringRef text);

} // namespace fagen::tblgen
