// fagen: messages of JSON-RPC on standard input and output, as the language server protocol frames them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/Support/JSON.h"

#include <optional>

namespace fagen {

/// The body of the next message; nothing at the end of the input, or where it is no message.
std::optional<std::string> readMessage();

/// Writes a message, and sees that it leaves at once.
void writeMessage(llvm::json::Object message);

} // namespace fagen
