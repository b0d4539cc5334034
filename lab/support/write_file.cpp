// fagen: files that a command of fagen-run was asked to write.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "write_file.h"

#include "fagen/Output/OutputFile.h"
#include "user_error.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>

namespace fagen::lab {

void writeFile(const std::string &path, const std::string &text) {
  if (path == "-") {
    std::cout << text; // whether all of it was taken, main() looks at the end
    return;
  }
  if (const std::string problem = writeOutput(path, text); !problem.empty())
    throw UserError(problem);
}

void flushStandardOutput() {
  errno = 0;
  std::cout.flush();
  if (std::cout && std::fflush(stdout) == 0 && !std::ferror(stdout))
    return;
  const int reason = errno;
  std::cout.clear(); // it is told once
  std::clearerr(stdout);
  throw UserError(
      fmt::format("cannot write standard output{}{}", reason ? ": " : "", reason ? std::strerror(reason) : ""));
}

void makeDirectory(const std::string &path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code)
    throw UserError(fmt::format("cannot make the directory '{}': {}", path, code.message()));
}

} // namespace fagen::lab
