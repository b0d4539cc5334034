// fagen: arguments of a command line that its options do not take.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "arguments/ArgumentMistakes.h"

#include "ChoiceOption.h"
#include "fagen/Support/Suggest.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"

using namespace llvm;

namespace fagen {

namespace {

class ArgumentChecker {
public:
  ArgumentChecker(cl::SubCommand &command, Diagnostics &diags)
      : command(command), options(cl::getRegisteredOptions(command)), diags(diags),
        program(command.getName().empty() ? "fagen" : ("fagen " + command.getName()).str()) {}
  void run(ArrayRef<char *> arguments);

private:
  void takePositional(StringRef argument);
  /// True where the next argument is its value.
  bool takeOption(StringRef argument, bool isLast);
  void reportUnknown(StringRef written, StringRef name);
  void reportNoValue(const cl::Option &option);
  void checkMissing();

  cl::SubCommand &command;
  StringMap<cl::Option *> &options;
  Diagnostics &diags;
  const std::string program;
  DenseSet<const cl::Option *> seen;
  unsigned positionals = 0;
  bool isForHelp = false;
};

} // namespace

static std::string dashed(StringRef name) { return ((name.size() == 1 ? "-" : "--") + name).str(); }

static bool isRequired(const cl::Option &option) {
  return option.getNumOccurrencesFlag() == cl::Required || option.getNumOccurrencesFlag() == cl::OneOrMore;
}

void ArgumentChecker::takePositional(StringRef argument) {
  if (++positionals == 1 && command.PositionalOpts.empty())
    diags.error(Location(),
                "unexpected '" + argument + "': " + program + " takes options only; " + program + " --help lists them");
}

void ArgumentChecker::reportUnknown(StringRef written, StringRef name) {
  std::vector<StringRef> known;
  for (const auto &entry : options)
    if (entry.second->getOptionHiddenFlag() == cl::NotHidden)
      known.push_back(entry.first());
  sort(known);
  const StringRef near = nearestWord(name, known);
  diags.error(Location(), "unknown option '" + written + "'; " +
                              (near.empty() ? program + " --help lists those that there are"
                                            : "did you mean '" + dashed(near) + "'?"));
}

void ArgumentChecker::reportNoValue(const cl::Option &option) {
  std::vector<StringRef> values;
  if (const cl::generic_parser_base *choice = knownChoices().lookup(&option))
    for (unsigned n = 0; n != choice->getNumOptions(); ++n)
      values.push_back(choice->getOption(n));
  diags.error(Location(), dashed(option.ArgStr) +
                              " needs a value: " + (values.empty() ? option.HelpStr.str() : alternatives(values)));
}

bool ArgumentChecker::takeOption(StringRef argument, bool isLast) {
  const StringRef written = argument.split('=').first;
  const StringRef name = written.drop_front(written.starts_with("--") ? 2 : 1);
  const auto found = options.find(name);
  if (name.starts_with("help") || name == "h" || name == "version") {
    isForHelp = true;
    return false;
  }
  if (found == options.end()) {
    reportUnknown(written, name);
    return false;
  }
  const cl::Option &option = *found->second;
  seen.insert(&option);
  const bool isApart = !argument.contains('=') && option.getValueExpectedFlag() == cl::ValueRequired;
  if (isApart && isLast)
    reportNoValue(option);
  return isApart;
}

void ArgumentChecker::checkMissing() {
  std::vector<const cl::Option *> missing;
  for (const auto &entry : options)
    if (isRequired(*entry.second) && !entry.second->isPositional() && !seen.contains(entry.second))
      missing.push_back(entry.second);
  sort(missing, [](const cl::Option *a, const cl::Option *b) { return a->ArgStr < b->ArgStr; });
  for (const cl::Option *option : missing)
    diags.error(Location(), dashed(option->ArgStr) + " is missing: " + option->HelpStr);
  for (const cl::Option *option : command.PositionalOpts)
    if (isRequired(*option) && positionals == 0)
      diags.error(Location(), "no file is given: " + program + " " + option->HelpStr + "; " + program +
                                  " --help has examples, and fagen init writes a spec to begin with");
}

void ArgumentChecker::run(ArrayRef<char *> arguments) {
  bool isOption = true; // until "--"
  for (size_t i = 0; i < arguments.size(); ++i) {
    const StringRef argument = arguments[i];
    if (!isOption || !argument.starts_with("-") || argument == "-")
      takePositional(argument);
    else if (argument == "--")
      isOption = false;
    else
      i += takeOption(argument, i + 1 == arguments.size());
  }
  if (!isForHelp && !diags.hasErrors())
    checkMissing();
}

void checkArguments(ArrayRef<char *> arguments, Diagnostics &diags) {
  arguments = arguments.drop_front(); // the program
  for (cl::SubCommand *command : cl::getRegisteredSubcommands())
    if (!arguments.empty() && !command->getName().empty() && command->getName() == arguments.front())
      return ArgumentChecker(*command, diags).run(arguments.drop_front());
  ArgumentChecker(cl::SubCommand::getTopLevel(), diags).run(arguments);
}

} // namespace fagen
