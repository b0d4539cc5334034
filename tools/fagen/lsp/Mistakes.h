// fagen: the mistakes of a spec, as the language server protocol has them, and what mends them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"

#include <vector>

namespace fagen {

/// What the checks of specs say of a text: objects of --diagnostics=json.
std::vector<llvm::json::Object> mistakesIn(llvm::StringRef text);

/// A range of the protocol, lines and characters from 0, of such an object's place; a point where it has no end.
llvm::json::Object rangeOf(const llvm::json::Object &mistake);

/// A diagnostic of the protocol, its notes in its text.
llvm::json::Object diagnosticOf(const llvm::json::Object &mistake);

/// Code actions of the protocol that mend the mistake in the document of this URI: its fixes, else the word that its
/// message asks for.
llvm::json::Array quickFixesOf(const llvm::json::Object &mistake, llvm::StringRef uri);

} // namespace fagen
