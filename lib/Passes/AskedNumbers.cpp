// fagen: numbers of a spec that single passes are asked for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AskedNumbers.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;

const ir::Constant *fagen::askedNumber(const ir::Kernel &kernel, OptionKey key) {
  const auto found = llvm::find_if(
      kernel.constants, [&](const ir::Constant &constant) { return constant.name == optionInfo(key).constant; });
  return found == kernel.constants.end() ? nullptr : &*found;
}
