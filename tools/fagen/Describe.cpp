// fagen: the command line of fagen as its manual page and completions have it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Describe.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace fagen {

static ManualOption describe(const cl::Option &option) {
  ManualOption described;
  described.name = ((option.ArgStr.size() == 1 ? "-" : "--") + option.ArgStr).str();
  described.value = option.ValueStr.str();
  described.help = option.HelpStr.str();
  const auto found = knownChoices().find(&option);
  if (found == knownChoices().end())
    return described;
  const cl::generic_parser_base &parser = *found->second;
  for (unsigned i = 0; i != parser.getNumOptions(); ++i)
    if (!parser.getOption(i).empty())
      described.choices.push_back({parser.getOption(i).str(), parser.getDescription(i).str()});
  described.value = "value";
  described.isOptional = option.getValueExpectedFlag() == cl::ValueOptional;
  return described;
}

ManualCommand describe(cl::SubCommand &subcommand, StringRef examples) {
  ManualCommand described;
  described.name = subcommand.getName().str();
  described.summary = subcommand.getDescription().str();
  described.examples = examples.ltrim('\n').str();
  for (const cl::Option *operand : subcommand.PositionalOpts)
    described.operands += (described.operands.empty() ? "" : " ") + operand->HelpStr.str();
  for (const auto &entry : cl::getRegisteredOptions(subcommand))
    if (entry.second->getOptionHiddenFlag() == cl::NotHidden)
      described.options.push_back(describe(*entry.second));
  llvm::sort(described.options, [](const ManualOption &a, const ManualOption &b) { return a.name < b.name; });
  return described;
}

} // namespace fagen
