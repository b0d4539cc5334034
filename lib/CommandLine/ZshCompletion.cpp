// fagen: a command line as completions of zsh.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fagen/CommandLine/Manual.h"

namespace fagen {

/// Text in single quotes, in which _arguments sees no brackets and colons.
static std::string quotedForArguments(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\')
      result += '\\';
    if (c == '\'')
      result += "'\\''";
    else
      result += c == '\n' ? ' ' : c;
  }
  return result;
}

/// Text in double quotes in single quotes, of an action that is evaluated.
static std::string evaluated(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '"' || c == '$' || c == '`' || c == '\\')
      result += '\\';
    if (c == '\'')
      result += "'\\''";
    else
      result += c == '\n' ? ' ' : c;
  }
  return result;
}

/// What completes the option's value.
static std::string actionOf(const ManualOption &option) {
  if (option.takesFile())
    return "_files";
  if (option.takesDirectory())
    return "_files -/";
  std::string choices;
  for (const ManualChoice &choice : option.choices)
    choices += (choices.empty() ? "" : " ") + quotedForArguments(choice.name) + "\\:\"" + evaluated(choice.help) + "\"";
  return choices.empty() ? " " : "((" + choices + "))";
}

static std::string argumentOf(const ManualOption &option) {
  const bool isLong = option.name.substr(0, 2) == "--";
  std::string text = "'" + option.name +
                     (option.value.empty() ? ""
                      : option.isOptional  ? "=-"
                      : isLong             ? "="
                                           : "") +
                     "[" + quotedForArguments(option.help) + "]";
  if (!option.value.empty())
    text += std::string(option.isOptional ? "::" : ":") + quotedForArguments(option.value) + ":" + actionOf(option);
  return text + "'";
}

static std::string argumentsOf(const ManualCommand &command) {
  std::string text = "_arguments";
  for (const ManualOption &option : command.options)
    text += " \\\n      " + argumentOf(option);
  return text + (command.operands.empty() ? "" : " \\\n      '*:file:_files'");
}

std::string printZshCompletion(const Manual &manual) {
  std::string text = "#compdef " + manual.tool + "\n# written by " + manual.tool + " --generate=zsh\n";
  std::string commands, cases, others;
  for (const ManualCommand &command : manual.commands) {
    if (command.name.empty()) {
      others = argumentsOf(command);
      continue;
    }
    commands += "    '" + quotedForArguments(command.name) + ":" + quotedForArguments(command.summary) + "'\n";
    cases += "  " + command.name + ")\n    shift words\n    ((CURRENT--))\n    " + argumentsOf(command) + "\n    ;;\n";
  }
  text += "local -a commands=(\n" + commands + "  )\n";
  text += "((CURRENT == 2)) && [[ $words[2] != -* ]] && _describe command commands\n";
  text += "case $words[2] in\n" + cases + "  *)\n    " + others + "\n    ;;\nesac\n";
  return text;
}

} // namespace fagen
