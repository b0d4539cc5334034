// fagen: the compiler: `fagen SPEC... -o DIR` and its subcommands.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Command.h"
#include "Describe.h"
#include "arguments/CommandLineMistakes.h"
#include "fagen/Support/CrashHandler.h"
#include "fagen/Support/Diagnostics.h"
#include "fagen/Support/Memory.h"
#include "fagen/Support/StandardOutput.h"
#include "fagen/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace fagen;

namespace {

Commands makeCommands() {
  Commands commands;
  commands.push_back(makeCheckCommand());
  commands.push_back(makeFormatCommand());
  commands.push_back(makeInitCommand());
  commands.push_back(makeLspCommand());
  return commands;
}

/// What `fagen --generate=man` and the like print.
std::string generated(const Commands &commands, std::string_view kind) {
  Manual manual{"fagen", FAGEN_VERSION, "compiler from attention specs to readable CUDA", {describeCommandLine()}};
  for (const std::unique_ptr<Command> &command : commands) {
    command->hideOtherOptions();
    manual.commands.push_back(describe(command->getSubcommand(), command->getExamples()));
  }
  return *generate(manual, kind);
}

int runCommand(Command &command, int argc, char **argv) {
  command.hideOtherOptions();
  llvm::cl::extrahelp examples(command.getExamples());
  setVersionPrinter();
  parseOrExit(argc, argv, "");
  return command.run(argv[0]);
}

/// Commands of the Python package's program `fagen`, which hands everything else to this one.
constexpr llvm::StringLiteral kCommandsInPython[] = {"doctor", "bench", "cache"};

/// Says which command was meant by a first word that is no file: "chekc". True when it was said.
bool saysOtherCommand(const Commands &commands, llvm::StringRef word) {
  const bool isPath = word.contains('.') || word.contains('/');
  if (word.empty() || word.starts_with("-") || llvm::sys::fs::exists(word))
    return false;
  std::vector<llvm::StringRef> names;
  for (const std::unique_ptr<Command> &command : commands)
    names.push_back(command->getName());
  const std::string known = alternatives(names);
  llvm::append_range(names, kCommandsInPython);
  const llvm::StringRef near = nearestWord(word, names);
  if (near.empty() && isPath)
    return false;
  llvm::SourceMgr noSources;
  Diagnostics diags(noSources, llvm::errs());
  if (llvm::is_contained(kCommandsInPython, word))
    diags.error(Location(), "'" + word + "' is a command of the Python package, and this is the compiler alone: " +
                                "`python -m fagen " + word + "` runs it where the package is installed " +
                                "(scripts/build-wheel builds it)");
  else
    diags.error(Location(), "unknown command '" + word + "', and no file; " +
                                (near.empty() ? "commands are " + known + "; a spec is compiled by fagen SPEC.fa -o DIR"
                                              : ("did you mean '" + near + "'?").str()));
  return true;
}

} // namespace

int main(int argc, char **argv) {
  keepMemory();
  takeLargePages();
  reportCrashes("fagen");
  checkStandardOutputAtExit("fagen");
  const Commands commands = makeCommands();
  if (std::optional<std::string_view> kind = generatedKind(argc, argv)) {
    llvm::outs() << generated(commands, *kind);
    return kDone;
  }
  for (const std::unique_ptr<Command> &command : commands)
    if (argc > 1 && command->getName() == argv[1])
      return runCommand(*command, argc, argv);
  if (argc > 1 && saysOtherCommand(commands, argv[1]))
    return kUserMistake;
  // Its memory goes back with the process: taking thousands of ops and strings apart first would take longer.
  static Driver &driver = *new Driver(parseCommandLine(argc, argv), argv[0], llvm::errs());
  return driver.run();
}
