// fagen: a program of textual IR as a plan and its text, by fagen-opt.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

namespace fagen::lab {

/// A directory with the text and the plan of a program; it goes with the object.
class ProgramFromIr {
public:
  /// Lowers the file with fagen-opt: FAGEN_OPT, or the one next to this executable, or on PATH. UserError with its
  /// words where it refuses.
  ProgramFromIr(const std::string &path, bool hasClocks);
  ~ProgramFromIr();
  ProgramFromIr(const ProgramFromIr &) = delete;
  ProgramFromIr &operator=(const ProgramFromIr &) = delete;

  std::string plan() const; ///< path of the plan

private:
  std::string directory;
};

} // namespace fagen::lab
