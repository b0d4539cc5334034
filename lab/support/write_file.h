// fagen: files that a command of fagen-run was asked to write.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

namespace fagen::lab {

/// Replaces the file whole; writes to a device or pipe; "-" is standard output. UserError when that fails.
void writeFile(const std::string &path, const std::string &text);
/// What was printed so far is written. UserError when standard output does not take it: commands ask before they write
/// files, so that they leave none when their output fails.
void flushStandardOutput();
/// Makes the directory and those above it. UserError when that fails.
void makeDirectory(const std::string &path);

} // namespace fagen::lab
