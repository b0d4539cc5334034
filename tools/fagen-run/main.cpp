// fagen: fagen-run: lists, checks and times generated kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Command.h"
#include "emulator/emulator.h"
#include "lab/device/device.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <iostream>

using namespace fagen::lab;

namespace {

int run(int argc, char **argv) {
  CLI::App app("fagen-run: lists, checks and times generated attention kernels", "fagen-run");
  app.set_version_flag("--version", "fagen-run " FAGEN_VERSION);
  app.require_subcommand(1);
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(makeListCommand());
  commands.push_back(makeCheckCommand());
  commands.push_back(makeSoakCommand());
  commands.push_back(makeTimeCommand());
  commands.push_back(makeGateCommand());
  commands.push_back(makeBreakdownCommand());
  commands.push_back(makeProfileCommand());
  commands.push_back(makeConflictsCommand());
  commands.push_back(makeMutateCommand());
  commands.push_back(makeConformanceCommand());
  commands.push_back(makeProgramCommand());
  commands.push_back(makeReportCommand());
#ifdef FAGEN_HAS_TUNER
  commands.push_back(makeTuneCommand());
  commands.push_back(makeTuneReplayCommand());
  commands.push_back(makeTuneWorkerCommand());
#endif
  for (const auto &command : commands)
    command->declare(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? kOk : kUserMistake;
  }
  for (const auto &command : commands)
    if (command->isChosen())
      return command->run();
  return kUserMistake;
}

/// run(), with what it throws said on standard error.
int runAndReport(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const UserError &error) {
    fmt::print(stderr, "fagen-run: error: {}\n", error.what());
    return kUserMistake;
  } catch (const DeviceError &error) {
    fmt::print(stderr, "fagen-run: error: the device cannot go on: {}\n", error.what());
    return kFailedCheck;
  } catch (const fagen::emulator::MachineError &error) {
    fmt::print(stderr, "fagen-run: error: {}\n", error.what());
    return kInternal;
  } catch (const std::exception &error) {
    fmt::print(stderr, "fagen-run: internal error: {}\n", error.what());
    return kInternal;
  }
}

/// Whether standard output took everything; else says that it did not.
bool standardOutputIsWritten() {
  errno = 0;
  std::cout.flush();
  if (std::cout && std::fflush(stdout) == 0 && !std::ferror(stdout))
    return true;
  fmt::print(stderr, "fagen-run: error: cannot write standard output{}{}\n", errno ? ": " : "",
             errno ? std::strerror(errno) : "");
  return false;
}

} // namespace

int main(int argc, char **argv) {
  const int code = runAndReport(argc, argv);
  return !standardOutputIsWritten() && code == kOk ? int(kUserMistake) : code;
}
