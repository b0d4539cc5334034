// fagen: text that says which pass was the last that all kernels of its program went through.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   program @gemm after "order-roles" {
//
// Several passes share a phase. Between two of them only this tells which are left. The IR does not know the passes:
// whether there is such a one, and whether kernels are in its phase, is asked where text is read (Lower/TextualIr.h).
#pragma once

#include "fagen/IR/IR.h"
#include "fagen/Support/Diagnostics.h"

namespace fagen::ir {

struct LastPass {
  std::string name;   ///< empty: the text does not say
  llvm::SMLoc source; ///< of the name
};

/// As the other two of these names (IR.h), of text that may say which pass was the last.
std::unique_ptr<Program> parseProgram(unsigned buffer, Diagnostics &diags, LastPass &last);
void print(const Program &program, llvm::StringRef lastPass, llvm::raw_ostream &os);

} // namespace fagen::ir
