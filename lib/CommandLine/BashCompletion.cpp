// fagen: a command line as completions of bash.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bash takes `--emit=cuda` for three words, so the option that a value belongs to stands one or two words before it.
#include "fagen/CommandLine/Manual.h"

namespace fagen {

static std::string wordsOf(const ManualOption &option) {
  std::string words;
  for (const ManualChoice &choice : option.choices)
    words += (words.empty() ? "" : " ") + choice.name;
  return words;
}

/// The lines of `case "$command $option"` that complete values of the command's options.
static std::string valueCases(const ManualCommand &command) {
  std::string text;
  for (const ManualOption &option : command.options) {
    const std::string pattern = "    '" + command.name + " " + option.name + "') ";
    const std::string choices = "COMPREPLY=($(compgen -W '" + wordsOf(option) + "' -- \"$current\")); return";
    if (!option.choices.empty())
      text += pattern + (option.isOptional ? "[[ $assigned ]] && { " + choices + "; } ;;\n" : choices + " ;;\n");
    else if (option.takesFile())
      text += pattern + "COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n";
    else if (option.takesDirectory())
      text += pattern + "COMPREPLY=($(compgen -d -- \"$current\")); return ;;\n";
    else if (!option.value.empty() && !option.isOptional)
      text += pattern + "return ;;\n";
  }
  return text;
}

/// `--emit=`, `--json`; a single letter and its value are two words.
static std::string optionWords(const ManualCommand &command) {
  std::string words;
  for (const ManualOption &option : command.options) {
    const bool takesValue = !option.value.empty() && !option.isOptional && option.name.substr(0, 2) == "--";
    words += (words.empty() ? "" : " ") + option.name + (takesValue ? "=" : "");
  }
  return words;
}

std::string printBashCompletion(const Manual &manual) {
  std::string commands;
  for (const ManualCommand &command : manual.commands)
    commands += command.name.empty() ? "" : (commands.empty() ? "" : " ") + command.name;
  std::string function = "_" + manual.tool;
  for (char &c : function)
    c = c == '-' ? '_' : c;

  std::string text = "# bash completion for " + manual.tool + "; written by " + manual.tool + " --generate=bash\n" +
                     function +
                     "() {\n  local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} "
                     "assigned= command= words=\n"
                     "  if [[ $current == = ]]; then\n    current= assigned=1\n"
                     "  elif [[ $option == = ]]; then\n"
                     "    option=${COMP_WORDS[COMP_CWORD - 2]} assigned=1\n  fi\n";
  if (!commands.empty())
    text += "  if ((COMP_CWORD > 1)) && [[ ' " + commands +
            " ' == *\" ${COMP_WORDS[1]} \"* ]]; then\n"
            "    command=${COMP_WORDS[1]}\n  fi\n";
  text += "  case \"$command $option\" in\n";
  for (const ManualCommand &command : manual.commands)
    text += valueCases(command);
  text += "  esac\n  case $command in\n";
  for (const ManualCommand &command : manual.commands)
    text += "    '" + command.name + "') words='" + optionWords(command) + "' ;;\n";
  text += "  esac\n  if [[ $current == -* ]]; then\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
          "    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null\n    return\n  fi\n"
          "  COMPREPLY=($(compgen -f -- \"$current\"))\n";
  if (!commands.empty())
    text += "  ((COMP_CWORD == 1)) && COMPREPLY+=($(compgen -W '" + commands + "' -- \"$current\"))\n";
  return text + "  return 0\n}\ncomplete -o filenames -F " + function + " " + manual.tool + "\n";
}

} // namespace fagen
