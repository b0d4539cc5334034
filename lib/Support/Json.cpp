// fagen: JSON that others wrote.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Support/Json.h"

#include "fagen/Support/JsonNesting.h"

llvm::Expected<llvm::json::Value> fagen::parseJson(llvm::StringRef text) {
  if (const std::optional<size_t> line = lineNestedTooDeep(text))
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "line %zu nests deeper than %u values", *line,
                                   kMostNestedJson);
  return llvm::json::parse(text);
}
