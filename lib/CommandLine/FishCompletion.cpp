// fagen: a command line as completions of fish.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fagen/CommandLine/Manual.h"

namespace fagen {

/// Text in single quotes.
static std::string quoted(std::string_view text) {
  std::string result = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\')
      result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result + "'";
}

static std::string nameOf(const ManualOption &option) {
  const bool isLong = option.name.substr(0, 2) == "--";
  return isLong ? "-l " + option.name.substr(2) : "-s " + option.name.substr(1);
}

static std::string printOption(const ManualOption &option, const std::string &head) {
  std::string text = head + nameOf(option);
  if (!option.choices.empty()) {
    std::string words;
    for (const ManualChoice &choice : option.choices)
      words += (words.empty() ? "" : " ") + choice.name;
    text += " -x -a " + quoted(words);
  } else if (!option.value.empty() && !option.isOptional) {
    text += option.takesFile() || option.takesDirectory() ? " -r -F" : " -x";
  }
  return text + " -d " + quoted(option.help) + "\n";
}

std::string printFishCompletion(const Manual &manual) {
  std::string text = "# fish completion for " + manual.tool + "; written by " + manual.tool + " --generate=fish\n";
  const std::string complete = "complete -c " + manual.tool + " -n ";
  std::string commands;
  for (const ManualCommand &command : manual.commands)
    commands += command.name.empty() ? "" : " " + command.name;
  for (const ManualCommand &command : manual.commands) {
    const bool isTool = command.name.empty();
    if (!isTool)
      text += complete + "__fish_use_subcommand -a " + command.name + " -d " + quoted(command.summary) + "\n";
    const std::string when =
        isTool ? "not __fish_seen_subcommand_from" + commands : "__fish_seen_subcommand_from " + command.name;
    for (const ManualOption &option : command.options)
      text += printOption(option, complete + quoted(when) + " ");
  }
  return text;
}

} // namespace fagen
