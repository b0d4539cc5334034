// fagen: what the text calls what it makes of buffers and roles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/TextNames.h"

#include "llvm/ADT/StringExtras.h"

using namespace fagen;
using llvm::StringRef;

std::string ir::typeOfTile(StringRef buffer) {
  std::string name;
  bool upper = true;
  for (char c : buffer) {
    if (c == '_') {
      upper = true;
      continue;
    }
    name += upper ? llvm::toUpper(c) : c;
    upper = false;
  }
  return name + "Tile";
}

std::string ir::typeOfRegisters(StringRef role) {
  return (llvm::Twine(llvm::toUpper(role.front())) + role.drop_front() + "Registers").str();
}

std::string ir::membersOfStrides(StringRef param) { return param.str() + "_stride"; }

StringRef ir::counterParam() { return "tile_counter"; }
