// fagen: a command line as a manual page.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fagen/CommandLine/Manual.h"

namespace fagen {

/// Text as roff shows it: dashes that can be copied, no line that is taken for a request.
static std::string escaped(std::string_view text) {
  std::string result;
  bool atLineStart = true;
  for (char c : text) {
    if (atLineStart && (c == '.' || c == '\''))
      result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
    atLineStart = c == '\n';
  }
  return result;
}

static std::string capital(std::string text) {
  for (char &c : text)
    c = c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
  return text;
}

/// \fB--emit\fR=\fIvalue\fR
static std::string headOf(const ManualOption &option) {
  std::string head = "\\fB" + escaped(option.name) + "\\fR";
  if (option.value.empty())
    return head;
  const std::string value = "=\\fI" + escaped(option.value) + "\\fR";
  return head + (option.isOptional ? "[" + value + "]" : value);
}

static std::string printOption(const ManualOption &option) {
  std::string text = ".TP\n" + headOf(option) + "\n" + escaped(option.help) + "\n";
  if (option.choices.empty())
    return text;
  text += ".RS\n";
  for (const ManualChoice &choice : option.choices)
    text += ".TP\n\\fB" + escaped(choice.name) + "\\fR\n" + escaped(choice.help) + "\n";
  return text + ".RE\n";
}

static std::string printSynopsis(const Manual &manual) {
  std::string text = ".SH SYNOPSIS\n";
  for (const ManualCommand &command : manual.commands) {
    if (command.name.empty() && command.operands.empty())
      continue; // the tool takes a subcommand always
    text += (text.back() == 'S' ? "" : ".br\n") + ("\\fB" + escaped(manual.tool));
    text += (command.name.empty() ? "" : " " + escaped(command.name)) + "\\fR [\\fIoptions\\fR] " +
            escaped(command.operands) + "\n";
  }
  return text;
}

std::string printManPage(const Manual &manual) {
  std::string text = ".TH " + capital(manual.tool) + " 1 \"\" \"" + manual.tool + " " + manual.version + "\"\n";
  text += ".SH NAME\n" + escaped(manual.tool) + " \\- " + escaped(manual.summary) + "\n" + printSynopsis(manual);
  for (const ManualCommand &command : manual.commands) {
    text += command.name.empty() ? ".SH OPTIONS\n" : ".SH " + capital(manual.tool + " " + command.name) + "\n";
    if (!command.summary.empty())
      text += escaped(command.summary) + "\n";
    for (const ManualOption &option : command.options)
      text += printOption(option);
    if (!command.examples.empty())
      text += ".PP\n.nf\n" + escaped(command.examples) + ".fi\n";
  }
  return text;
}

} // namespace fagen
