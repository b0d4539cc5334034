// fagen: a tool's command line as data, and what is printed of it: a manual page, completions of shells.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tools fill a Manual from the options that they parse with, so what is printed is never older than they are. No LLVM:
// fagen-run uses it too.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fagen {

/// A value that an option takes.
struct ManualChoice {
  std::string name;
  std::string help;
};

struct ManualOption {
  std::string name;        ///< with its dashes: "--emit", "-o"
  std::string value;       ///< what stands for its value: "file"; empty: it takes none
  bool isOptional = false; ///< it may stand without its value
  std::string help;
  std::vector<ManualChoice> choices; ///< empty: any value

  bool takesFile() const { return value == "file" || value == "path"; }
  bool takesDirectory() const { return value == "dir"; }
};

/// What follows the tool's name, or the tool without a subcommand.
struct ManualCommand {
  std::string name;     ///< empty: no subcommand
  std::string summary;  ///< of a subcommand
  std::string operands; ///< "SPEC..."
  std::vector<ManualOption> options;
  std::string examples; ///< what --help ends with
};

struct Manual {
  std::string tool, version, summary;
  std::vector<ManualCommand> commands; ///< the first is the one without a name
};

std::string printManPage(const Manual &manual);
std::string printBashCompletion(const Manual &manual);
std::string printZshCompletion(const Manual &manual);
std::string printFishCompletion(const Manual &manual);

/// What `--generate=KIND` prints: man, bash, zsh or fish. Nothing for another kind.
std::optional<std::string> generate(const Manual &manual, std::string_view kind);

/// KIND, if the command line is just `--generate=KIND` with a kind that generate() knows.
std::optional<std::string_view> generatedKind(int argc, const char *const *argv);

} // namespace fagen
