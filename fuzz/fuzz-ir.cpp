// fagen: fuzz-ir: any text through the IR parser; what it accepts through the verifier, the printer and back.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/IR.h"
#include "fagen/IR/Verifier.h"
#include "fagen/Support/Diagnostics.h"

#include "llvm/Support/MemoryBuffer.h"

using namespace fagen;

namespace {

std::unique_ptr<ir::Program> read(llvm::StringRef text) {
  llvm::SourceMgr sources;
  Diagnostics diags(sources, llvm::nulls());
  const unsigned buffer = sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text), llvm::SMLoc());
  return ir::parseProgram(buffer, diags);
}

std::string print(const ir::Program &program) {
  std::string text;
  llvm::raw_string_ostream os(text);
  ir::print(program, os);
  return text;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::unique_ptr<ir::Program> program = read(llvm::StringRef(reinterpret_cast<const char *>(data), size));
  if (!program)
    return 0;
  ir::verify(*program, [](const Location &, const llvm::Twine &) {});
  const std::string once = print(*program);
  std::unique_ptr<ir::Program> again = read(once);
  if (!again || print(*again) != once)
    __builtin_trap();
  return 0;
}
