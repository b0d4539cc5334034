// fagen: what every command of fagen-run shares: its options, its progress line, its output.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A command is one file: a class with its options as members, made by a function that main.cpp lists.
#pragma once

#include "fagen/CommandLine/Manual.h"
#include "lab/kernel_set/listing.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace fagen::lab {

enum ExitCode { kOk = 0, kUserMistake = 1, kFailedCheck = 2, kInternal = 70 };

class Command {
public:
  /// `takesKernels`: the command reads generated kernel directories.
  Command(const char *name, const char *summary, bool takesKernels = true)
      : name(name), summary(summary), takesKernels(takesKernels) {}
  virtual ~Command() = default;
  /// Declares the command's own options.
  virtual void addOptions(CLI::App &app) = 0;
  /// Does the work; gives the exit code. Throws UserError for the user's mistakes, DeviceError when the GPU gives up.
  virtual int run() = 0;

  /// Declares what all commands take, then addOptions().
  void declare(CLI::App &app);
  /// What to do where there is no GPU.
  virtual std::string withoutGpu() const { return "--device cpu runs the emulator"; }
  /// What manual pages and completions have of it, once it was declared.
  ManualCommand manual() const;
  bool isChosen() const { return declared->parsed(); }

protected:
  /// The head that every JSON result has.
  Json envelope(const class Gpu *gpu) const;
  /// Prints the table or, with --json, the JSON; writes the JSON to --output.
  void deliver(const std::string &table, const Json &json) const;

  std::vector<std::string> directories;
  bool json = false;
  std::string output;
  std::vector<std::string> notes;

private:
  const char *name, *summary;
  bool takesKernels;
  CLI::App *declared = nullptr;
};

/// The options of a CLI11 app, itself or a subcommand, for manual pages and completions.
ManualCommand describeApp(const CLI::App &app);

std::unique_ptr<Command> makeListCommand();
std::unique_ptr<Command> makeExplainCommand();
std::unique_ptr<Command> makeCheckCommand();
std::unique_ptr<Command> makeTimeCommand();
std::unique_ptr<Command> makeGateCommand();
std::unique_ptr<Command> makeConflictsCommand();
std::unique_ptr<Command> makeBreakdownCommand();
std::unique_ptr<Command> makeProfileCommand();
std::unique_ptr<Command> makeMutateCommand();
std::unique_ptr<Command> makeConformanceCommand();
std::unique_ptr<Command> makeProgramCommand();
std::unique_ptr<Command> makeReportCommand();
std::unique_ptr<Command> makeSoakCommand();
std::unique_ptr<Command> makeTuneCommand();
std::unique_ptr<Command> makeTuneReplayCommand();
std::unique_ptr<Command> makeTuneWorkerCommand();

/// One line on standard error: overwritten on a terminal, else one every ten seconds.
class ProgressLine {
public:
  ProgressLine();
  void operator()(size_t done, size_t total, const std::string &what);

private:
  bool terminal;
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

/// UserError, with the nearest name, unless every wanted variant is in the sets.
void requireVariants(const std::vector<std::unique_ptr<KernelSet>> &sets, const std::vector<std::string> &wanted);

} // namespace fagen::lab
