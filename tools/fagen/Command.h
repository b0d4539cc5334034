// fagen: what follows `fagen` when it is not a spec: check, fmt, init, lsp.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "ChoiceOption.h"
#include "Driver.h"

#include "llvm/Support/CommandLine.h"

#include <memory>
#include <vector>

namespace fagen {

/// A subcommand. Its options are members of the derived class, in `category` and `subcommand`; they have their values
/// once the command line was parsed.
class Command {
public:
  Command(const char *name, const char *summary, const char *examples)
      : category(name), subcommand(name, summary), examples(examples) {}
  virtual ~Command() = default;
  Command(const Command &) = delete;
  Command &operator=(const Command &) = delete;

  virtual ExitCode run(const char *argv0) = 0;

  llvm::StringRef getName() const { return subcommand.getName(); }
  /// What --help ends with.
  llvm::StringRef getExamples() const { return examples; }
  /// Leaves only this command's options in its --help.
  void hideOtherOptions() { llvm::cl::HideUnrelatedOptions(category, subcommand); }
  llvm::cl::SubCommand &getSubcommand() { return subcommand; }

protected:
  llvm::cl::OptionCategory category;
  llvm::cl::SubCommand subcommand;

private:
  const char *examples;
};

using Commands = std::vector<std::unique_ptr<Command>>;

/// How a command prints what is wrong.
class DiagnosticsFlag {
public:
  DiagnosticsFlag(llvm::cl::OptionCategory &category, llvm::cl::SubCommand &subcommand);
  DiagnosticsFormat get() const { return value; }

private:
  ChoiceOption<DiagnosticsFormat> value;
};

std::unique_ptr<Command> makeCheckCommand();
std::unique_ptr<Command> makeFormatCommand();
std::unique_ptr<Command> makeInitCommand();
std::unique_ptr<Command> makeLspCommand();

} // namespace fagen
