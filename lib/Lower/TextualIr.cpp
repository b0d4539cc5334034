// fagen: programs of textual IR: read, and what is left to lower them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Lower/TextualIr.h"

#include "fagen/IR/Verifier.h"
#include "fagen/Passes/Pipeline.h"

#include "llvm/Support/MemoryBuffer.h"

using namespace fagen;
using llvm::StringRef;
using llvm::Twine;

std::unique_ptr<ir::Program> fagen::readProgram(StringRef path, Diagnostics &diags) {
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> file = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (!file) {
    diags.error(Location(), "cannot read '" + path + "': " + file.getError().message());
    return nullptr;
  }
  const unsigned buffer = diags.getSources().AddNewSourceBuffer(std::move(*file), llvm::SMLoc());
  std::unique_ptr<ir::Program> program = ir::parseProgram(buffer, diags);
  if (!program)
    return nullptr;
  const bool sound =
      ir::verify(*program, [&](const Location &location, const Twine &message) { diags.error(location, message); });
  return sound ? std::move(program) : nullptr;
}

std::vector<std::string> fagen::passesLeft(const ir::Program &program) {
  ir::Phase phase = ir::Phase::Verified;
  for (const std::unique_ptr<ir::Kernel> &kernel : program.kernels)
    phase = std::min(phase, kernel->phase);
  std::vector<std::string> names;
  for (const PassEntry &pass : pipelinePasses())
    if (!pass.needsVariant && pass.leaves >= phase)
      names.push_back(pass.name.str());
  return names;
}
