// fagen: messages of JSON-RPC on standard input and output, as the language server protocol frames them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "JsonRpc.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>

using namespace llvm;

namespace fagen {

static constexpr size_t kMostBytes = size_t(64) << 20;

/// A line of the head without its end. Nothing at the end of the input.
static std::optional<std::string> readLine() {
  std::string line;
  for (int c = std::getchar(); c != EOF && line.size() < 4096; c = std::getchar()) {
    if (c == '\n')
      return StringRef(line).rtrim('\r').str();
    line += char(c);
  }
  return std::nullopt;
}

std::optional<std::string> readMessage() {
  size_t length = 0;
  for (;;) {
    const std::optional<std::string> line = readLine();
    if (!line)
      return std::nullopt;
    if (line->empty())
      break;
    auto [name, value] = StringRef(*line).split(':');
    if (name.equals_insensitive("Content-Length") && value.trim().getAsInteger(10, length))
      return std::nullopt;
  }
  if (length == 0 || length > kMostBytes)
    return std::nullopt;
  std::string body(length, '\0');
  if (std::fread(body.data(), 1, length, stdin) != length)
    return std::nullopt;
  return body;
}

void writeMessage(json::Object message) {
  message["jsonrpc"] = "2.0";
  std::string body;
  raw_string_ostream(body) << json::Value(std::move(message));
  outs() << "Content-Length: " << body.size() << "\r\n\r\n" << body;
  outs().flush();
}

} // namespace fagen
