// fagen: programs of textual IR on the command line: rows of a kernel set that are called by their names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "Compile.h"
#include "fagen/Lower/TextualIr.h"

namespace fagen {

class Programs {
public:
  /// Reads and verifies them; reports what is wrong.
  void read(llvm::ArrayRef<std::string> paths, Diagnostics &diags);
  bool empty() const { return files.empty(); }

  /// A kernel set for them alone: of this name, or of the first program's. Nothing after a reported mistake.
  std::optional<CompiledKernel> ownSet(llvm::StringRef name, Diagnostics &diags);

  /// Runs the passes that are left on each, to the proof, and adds it to the set's variants.
  void compile(CompiledKernel &set, const PipelineOptions &options, Diagnostics &diags);

private:
  struct File {
    std::string path;
    TextualProgram text;
  };
  void add(CompiledKernel &set, File &file, const PipelineOptions &options, Diagnostics &diags);

  std::vector<File> files;
  std::unique_ptr<KernelSpec> own; ///< of the set that has nothing else
};

} // namespace fagen
