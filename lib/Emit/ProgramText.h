// fagen: the text of a program whose kernels have parameters of their own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One struct of parameters for all launches; then each kernel: constants, shared memory, registers, a function for each
// role with its blocks nested as in the IR, and the entry that sends warps to their roles.
#pragma once

#include "ProgramOps.h"

#include "fagen/Emit/Kernel.h"

namespace fagen {

class ProgramTextEmitter {
public:
  ProgramTextEmitter(const ir::Program &program, bool hasClocks)
      : program(program), params(program, hasClocks), stream(text.source), out(stream, 2, kColumns) {}

  KernelText run();

private:
  static constexpr unsigned kColumns = 140;

  void emitHead();
  void emitIncludes();
  void emitParams();
  void emitKernel(const ir::Kernel &kernel);
  void emitStorage(const ir::Kernel &kernel);
  void emitCta(const ir::Kernel &kernel);
  void emitGrid(const ir::Kernel &kernel);
  void emitRole(const ir::Kernel &kernel, const ir::Role &role);
  void emitRegisters(const ir::Kernel &kernel, const ir::Role &role);
  void emitEntry(const ir::Kernel &kernel);

  const ir::Program &program;
  const ProgramParams params;
  std::vector<size_t> places; ///< of each kernel's constants in the text
  KernelText text;
  llvm::raw_string_ostream stream;
  IndentedStream out;
};

} // namespace fagen
