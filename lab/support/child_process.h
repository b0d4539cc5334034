// fagen: runs another program and reads what it says, line by line.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace fagen::lab {

/// How a child that could not be started ends.
inline constexpr int kNotStarted = 127;

struct ChildOutcome {
  int exitCode = 0;   ///< or kNotStarted
  int signal = 0;     ///< that ended it; 0: none
  std::string errors; ///< the end of its standard error
  bool timedOut = false;

  bool succeeded() const { return exitCode == 0 && signal == 0; }
};

/// Runs `arguments` (found through PATH), gives each line of its standard output to `onLine`, and waits for its end.
/// After `seconds` without an end it is killed; 0: it may take as long as it likes. It dies with this process.
ChildOutcome runChild(const std::vector<std::string> &arguments, double seconds,
                      const std::function<void(const std::string &line)> &onLine);

} // namespace fagen::lab
