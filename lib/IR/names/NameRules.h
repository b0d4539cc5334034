// fagen: which names the text of a program can use.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/StringRef.h"

#include <string>

namespace fagen::ir {

/// Why no member of a struct has that name: "is a keyword of C++"; "" where it may.
std::string whyNoMember(llvm::StringRef name);

/// Letters, digits and underscores, and no digit first.
bool isIdentifier(llvm::StringRef name);

/// Why no function, type or parameter of a lambda of the text has it: what members cannot have, and what the text says
/// itself, such as functions of the device library; "" where it may.
std::string whyNoName(llvm::StringRef name);

/// Why no variable of a role's function has it: likewise, and what stands for registers and places of elements there.
std::string whyNoVariable(llvm::StringRef name);

/// Why no role has it: likewise, and what the text's entry has for itself.
std::string whyNoRole(llvm::StringRef name);

/// Why no call gives a tensor or a number of that name, in C++ or Python; "" where it may.
std::string whyNoArgument(llvm::StringRef name);

/// Why a plan's expressions have no size or number of that name: "sms", "max"; "" where they may.
std::string whyNoNumber(llvm::StringRef name);

} // namespace fagen::ir
