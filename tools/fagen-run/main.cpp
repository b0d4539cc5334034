// fagen: fagen-run: lists, checks and times generated kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Command.h"
#include "emulator/emulator.h"
#include "lab/cases/problem.h"
#include "lab/device/device.h"
#include "lab/support/write_file.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iostream>
#include <sstream>

using namespace fagen::lab;

namespace {

using Commands = std::vector<std::unique_ptr<Command>>;

Commands makeCommands() {
  Commands commands;
  commands.push_back(makeListCommand());
  commands.push_back(makeExplainCommand());
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
  return commands;
}

/// What `fagen-run --generate=man` and the like print.
std::string generated(const CLI::App &app, const Commands &commands, std::string_view kind) {
  fagen::Manual manual{"fagen-run", FAGEN_VERSION, "list, check, time and tune generated kernels", {describeApp(app)}};
  for (const auto &command : commands)
    manual.commands.push_back(command->manual());
  return *fagen::generate(manual, kind);
}

/// A command; where there is no GPU with what to do about that.
int runWithRemedy(Command &command) {
  try {
    return command.run();
  } catch (const NoGpu &error) {
    throw UserError(fmt::format("{}; {}", error.what(), command.withoutGpu()));
  }
}

/// UserError where the first word looks like a command and is none.
void checkCommandName(const CLI::App &app, int argc, char **argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word.empty() || word.starts_with('-'))
    return;
  std::vector<std::string> known;
  for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; }))
    known.push_back(command->get_name());
  if (std::find(known.begin(), known.end(), word) != known.end())
    return;
  const std::string near = nearest(word, known);
  throw UserError(fmt::format("unknown command '{}'; {}", word,
                              near.empty() ? fmt::format("it is {}", fmt::join(known, ", "))
                                           : fmt::format("did you mean '{}'?", near)));
}

/// "--option" of all of a command's options.
std::vector<std::string> namesOfOptions(const CLI::App &command) {
  std::vector<std::string> names;
  for (const CLI::Option *option : command.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  return names;
}

/// What CLI11 found wrong with the command line, with what would be taken.
std::string describeMistake(const CLI::App &app, const CLI::ParseError &error) {
  const std::vector<CLI::App *> chosen = app.get_subcommands();
  const CLI::App &command = chosen.empty() ? app : *chosen.front();
  const std::string help =
      fmt::format("fagen-run{}{} --help", &command == &app ? "" : " ", &command == &app ? "" : command.get_name());
  if (error.get_exit_code() == int(CLI::ExitCodes::RequiredError)) {
    for (const CLI::Option *option : command.get_options())
      if (option->get_required() && option->count() == 0)
        return fmt::format("{} is required: {}; {} has examples", option->get_name(), option->get_description(), help);
    return fmt::format("no command is given; {} lists them", help);
  }
  const std::string said = error.what(), extras = said.substr(said.find(": ") + 1);
  if (std::istringstream words(extras); error.get_exit_code() == int(CLI::ExitCodes::ExtrasError)) {
    std::string word;
    words >> word;
    const std::string near =
        word.starts_with("-") ? nearest(word.substr(0, word.find('=')), namesOfOptions(command)) : "";
    return fmt::format("unexpected '{}'; {}", word,
                       near.empty() ? help + " lists what there is" : fmt::format("did you mean '{}'?", near));
  }
  std::string text = said;
  text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return fmt::format("{}; {} shows what it takes", text, help);
}

/// The words after `fagen-run`. check and time of a program, a .fair file or one that --program names, are the command
/// `program`, and that with --time.
std::vector<std::string> wordsOf(int argc, char **argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const bool isTime = !words.empty() && words.front() == "time", isCheck = !words.empty() && words.front() == "check";
  const bool isOfProgram = std::any_of(words.begin(), words.end(), [](const std::string &word) {
    return word.ends_with(".fair") || word == "--program" || word.starts_with("--program=");
  });
  if (!isOfProgram || !(isTime || isCheck))
    return words;
  words.front() = "program";
  if (isTime)
    words.push_back("--time");
  return words;
}

int run(int argc, char **argv) {
  CLI::App app("fagen-run: lists, checks and times generated attention kernels", "fagen-run");
  app.set_version_flag("--version", "fagen-run " FAGEN_VERSION);
  std::string kind; // read below, before anything else is parsed
  app.add_option("--generate", kind, "alone: print a manual page, or what completes this command line in a shell")
      ->check(CLI::IsMember({"man", "bash", "zsh", "fish"}));
  app.require_subcommand(1);
  const Commands commands = makeCommands();
  for (const auto &command : commands)
    command->declare(app);
  if (std::optional<std::string_view> asked = fagen::generatedKind(argc, argv)) {
    std::cout << generated(app, commands, *asked);
    return kOk;
  }
  checkCommandName(app, argc, argv);
  try {
    std::vector<std::string> words = wordsOf(argc, argv);
    std::reverse(words.begin(), words.end()); // as CLI11 takes them
    app.parse(std::move(words));
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() != 0)
      throw UserError(describeMistake(app, error));
    return app.exit(error);
  }
  for (const auto &command : commands)
    if (command->isChosen())
      return runWithRemedy(*command);
  return kUserMistake;
}

/// run(), with what it throws said on standard error.
int runAndReport(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const UserError &error) {
    fmt::print(stderr, "fagen-run: error: {}\n", error.what());
    return kUserMistake;
  } catch (const fagen::FieldError &error) { // what a file lacks that was read late
    fmt::print(stderr, "fagen-run: error: {}\n", error.what());
    return kUserMistake;
  } catch (const std::filesystem::filesystem_error &error) { // TMPDIR is not there, say
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
  try {
    flushStandardOutput();
    return true;
  } catch (const UserError &error) {
    fmt::print(stderr, "fagen-run: error: {}\n", error.what());
    return false;
  }
}

} // namespace

int main(int argc, char **argv) {
  const int code = runAndReport(argc, argv);
  return !standardOutputIsWritten() && code == kOk ? int(kUserMistake) : code;
}
