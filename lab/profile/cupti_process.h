// fagen: counts one launch with CUPTI in a process of its own, which CUPTI may crash.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "counter_device.h"
#include "lab/support/child_process.h"

namespace fagen::lab {

/// Runs `fagen-run profile ... --counters cupti --in-process` (of the program that FAGEN_PROFILER names, or this one).
/// `logFile` gets each call of CUPTI; empty: none. CountersRefused with what CUPTI said, or the call it crashed in.
Reading countWithCuptiProcess(const ProfiledRow &row, const std::vector<std::string> &metrics,
                              const std::filesystem::path &logFile);

/// The command, for a fagen-run at `program`.
std::vector<std::string> cuptiCommand(const std::string &program, const ProfiledRow &row,
                                      const std::vector<std::string> &metrics, const std::filesystem::path &logFile);

/// What the process said, by its end, the JSON on its standard output and the log of CUPTI's calls.
Reading readCuptiProcess(const ChildOutcome &outcome, const std::string &output, const std::string &log);

/// The call that a log ends with before its status; empty when each has one.
std::string unfinishedCall(const std::string &log);

} // namespace fagen::lab
