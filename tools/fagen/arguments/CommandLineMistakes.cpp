// fagen: mistakes on the command line, in the form that was asked for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "arguments/CommandLineMistakes.h"

#include "ChoiceOption.h"
#include "arguments/ArgumentMistakes.h"
#include "fagen/Support/Diagnostics.h"
#include "fagen/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace llvm;

namespace fagen {

namespace {

/// While one lives, what is written to standard error is kept. Parsers of values write there, whatever stream the
/// library was given.
class KeptErrors {
public:
  KeptErrors() : file(std::tmpfile()), standardError(::dup(STDERR_FILENO)) {
    if (file && standardError >= 0)
      ::dup2(::fileno(file), STDERR_FILENO);
  }
  ~KeptErrors() {
    if (file && standardError >= 0)
      ::dup2(standardError, STDERR_FILENO);
    if (standardError >= 0)
      ::close(standardError);
    if (file)
      std::fclose(file);
  }
  KeptErrors(const KeptErrors &) = delete;
  KeptErrors &operator=(const KeptErrors &) = delete;

  std::string text() const {
    std::string text;
    if (!file)
      return text;
    char block[1024];
    std::rewind(file);
    while (size_t size = std::fread(block, 1, sizeof block, file))
      text.append(block, size);
    return text;
  }

private:
  std::FILE *file;
  int standardError;
};

} // namespace

/// Whether mistakes are wanted as JSON. It is asked before anything was parsed, since parsing may fail.
static bool wantsJson(ArrayRef<char *> arguments) {
  for (size_t i = 1; i < arguments.size(); ++i) {
    StringRef argument = arguments[i];
    if (!argument.consume_front("--diagnostics") && !argument.consume_front("-diagnostics"))
      continue;
    if (argument == "=json" || (argument.empty() && i + 1 < arguments.size() && StringRef(arguments[i + 1]) == "json"))
      return true;
  }
  return false;
}

static bool asksForHelp(ArrayRef<char *> arguments) {
  return any_of(arguments.drop_front(), [](StringRef argument) {
    return argument == "-h" || argument == "-version" || argument == "--version" || argument.starts_with("-help") ||
           argument.starts_with("--help");
  });
}

/// What the library's parsers of values say, each in a line with the tool's name and "for the --x option: " before it.
static void reportParsed(StringRef text, Diagnostics &diags) {
  for (StringRef line : split(text.trim(), '\n')) {
    auto [where, message] = line.split(": ").second.split(" option: ");
    const bool isOfOption = where.consume_front("for the ");
    const StringRef number = message.split(" value invalid for ").first;
    const StringRef truth = message.split(" is invalid value for boolean").first;
    if (!isOfOption)
      diags.error(Location(), line);
    else if (number.size() != message.size())
      diags.error(Location(), where + " takes a number, not " + number);
    else if (truth.size() != message.size())
      diags.error(Location(), where + " is a switch, not " + truth + "; leave the value out");
    else
      diags.error(Location(), where + ": " + message);
  }
}

/// Says which values an option takes that was given another.
static void reportOtherValues(int argc, char **argv, Diagnostics &diags) {
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    if (!argument.consume_front("-"))
      continue;
    argument.consume_front("-");
    const auto [name, written] = argument.split('=');
    for (const auto &[option, values] : knownChoices()) {
      const bool isApart = !argument.contains('=') && option->getValueExpectedFlag() == cl::ValueRequired;
      if (option->ArgStr != name || (!argument.contains('=') && (!isApart || i + 1 == argc)))
        continue;
      const StringRef value = isApart ? StringRef(argv[i + 1]) : written;
      std::vector<StringRef> known;
      for (unsigned n = 0; n != values->getNumOptions(); ++n)
        if (!values->getOption(n).empty())
          known.push_back(values->getOption(n));
      if (is_contained(known, value) || value.empty())
        break; // other commands have the option with the same values
      const StringRef near = nearestWord(value, known);
      diags.error(Location(),
                  "--" + name + " has no '" + value + "'; " +
                      (near.empty() ? "it takes " + alternatives(known) : ("did you mean '" + near + "'?").str()));
      break;
    }
  }
}

[[noreturn]] static void exitWith(Diagnostics &diags) {
  diags.finish();
  std::exit(1);
}

void parseOrExit(int argc, char **argv, StringRef overview) {
  SourceMgr noSources;
  Diagnostics diags(noSources, errs());
  diags.setFormat(wantsJson(ArrayRef(argv, argc)) ? DiagnosticsFormat::Json : DiagnosticsFormat::Text);
  reportOtherValues(argc, argv, diags);
  if (!diags.hasErrors()) // one of these would have made a file needless
    checkArguments(ArrayRef(argv, argc), diags);
  if (diags.hasErrors())
    exitWith(diags);
  if (asksForHelp(ArrayRef(argv, argc))) { // which ends the program, and may fail to be written
    cl::ParseCommandLineOptions(argc, argv, overview, &errs());
    return;
  }
  std::string mistakes;
  {
    KeptErrors kept;
    if (cl::ParseCommandLineOptions(argc, argv, overview, &errs()))
      return;
    mistakes = kept.text();
  }
  reportParsed(mistakes, diags);
  exitWith(diags);
}

} // namespace fagen
