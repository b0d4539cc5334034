// fagen: the front end's door: a .fa file in, a checked SpecFile out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   llvm::SourceMgr sources;
//   unsigned buffer = sources.AddNewSourceBuffer(std::move(text), {});
//   Diagnostics diags(sources, llvm::errs());
//   Lowering lowering;
//   std::optional<SpecFile> file = analyzeSpec(sources, buffer, diags, {{}, &lowering});
//   if (!file)
//     return 1; // every mistake of the file has been reported, in the order of the text
//
// The SourceMgr must outlive the SpecFile as far as carets are wanted: locations point into its buffers. The base name
// of the buffer's identifier is what generated files cite.
#pragma once

#include "fagen/Spec/Spec.h"
#include "fagen/Support/Diagnostics.h"

#include <optional>
#include <string>
#include <vector>

namespace fagen {

struct AnalyzeOptions {
  std::vector<std::string> targets; ///< instead of those that the file names, if any
  SharedMeter *meter = nullptr;     ///< null: nobody looks whether shared memory suffices
};

/// Parses, checks and expands one file. Nothing when it has a mistake.
std::optional<SpecFile> analyzeSpec(llvm::SourceMgr &sources, unsigned bufferId, Diagnostics &diags,
                                    const AnalyzeOptions &options = {});

/// Checks what several files must not share when they go to one directory: kernel names (ignoring case) and symbols.
/// False after a reported clash.
bool checkDistinct(llvm::ArrayRef<SpecFile> files, Diagnostics &diags);

} // namespace fagen
