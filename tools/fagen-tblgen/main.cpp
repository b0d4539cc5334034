// fagen: the TableGen backend: facts in .td in, C++ tables, device wrappers and documents out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each emitter is one file, named by what it writes, and registers itself with its -gen- option.

#include "llvm/TableGen/Main.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/TableGen/TableGenBackend.h"

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv, "fagen's TableGen backend\n");
  return llvm::TableGenMain(argv[0]);
}
