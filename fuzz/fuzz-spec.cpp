// fagen: libFuzzer target: parser, layout, checks, expansion, lowering for the checks and the printer on any text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   cmake -B build/fuzz -DCMAKE_CXX_COMPILER=clang++ -DFAGEN_FUZZ=ON && ninja -C build/fuzz fuzz-spec
//   build/fuzz/bin/fuzz-spec -max_total_time=600 corpus specs

#include "fagen/Lower/Lower.h"
#include "fagen/Parse/Format.h"
#include "fagen/Spec/Analyze.h"
#include "fagen/Spec/PrintSpec.h"

#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

static std::optional<std::string> layOut(llvm::StringRef text) {
  llvm::SourceMgr sources;
  unsigned id = sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, "fuzz.fa"), llvm::SMLoc());
  fagen::Diagnostics diags(sources, llvm::nulls());
  std::optional<std::string> formatted = fagen::formatSpec(sources.getMemoryBuffer(id)->getBuffer(), diags);
  if (diags.hasInternalErrors())
    abort(); // it would have changed the spec
  return formatted;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  llvm::SourceMgr sources;
  unsigned id = sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, "fuzz.fa"), llvm::SMLoc());
  fagen::Diagnostics diags(sources, llvm::nulls());
  fagen::Lowering lowering;
  std::optional<fagen::SpecFile> file = fagen::analyzeSpec(sources, id, diags, {{}, &lowering});
  if (file.has_value() == diags.hasErrors())
    abort(); // neither a file nor an error, or both
  if (file)
    fagen::printSpec(*file, llvm::nulls());
  if (std::optional<std::string> once = layOut(text); once && layOut(*once) != once)
    abort(); // a second time it is laid out otherwise
  return 0;
}
