// fagen: the command line of fagen-run as its manual page and completions have it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Command.h"

namespace fagen::lab {

/// The values in `TEXT:{a,b}`.
static std::vector<ManualChoice> choicesOf(const std::string &type) {
  std::vector<ManualChoice> choices;
  const size_t open = type.find('{'), close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos)
    return choices;
  for (const std::string &name : CLI::detail::split(type.substr(open + 1, close - open - 1), ','))
    choices.push_back({name, ""});
  return choices;
}

static ManualOption describeOption(const CLI::Option &option, std::string name) {
  ManualOption described;
  described.name = std::move(name);
  described.help = option.get_description();
  if (option.get_expected_max() == 0 || option.get_items_expected_max() == 0)
    return described;
  described.choices = choicesOf(option.get_type_name());
  described.value = described.name == "--output" ? "file" : "value";
  return described;
}

ManualCommand describeApp(const CLI::App &app) {
  ManualCommand described;
  described.examples = app.get_footer() + (app.get_footer().empty() ? "" : "\n");
  for (const CLI::Option *option : app.get_options()) {
    if (option->get_positional()) {
      described.operands += (described.operands.empty() ? "" : " ") + option->get_name(/*positional=*/true) +
                            (option->get_items_expected_max() > 1 ? "..." : "");
      continue;
    }
    for (const std::string &name : option->get_lnames())
      described.options.push_back(describeOption(*option, "--" + name));
    if (option->get_lnames().empty())
      for (const std::string &name : option->get_snames())
        described.options.push_back(describeOption(*option, "-" + name));
  }
  return described;
}

ManualCommand Command::manual() const {
  ManualCommand described = describeApp(*declared);
  described.name = name;
  described.summary = summary;
  return described;
}

} // namespace fagen::lab
