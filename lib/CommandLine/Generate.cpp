// fagen: the kinds of what is printed of a command line.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fagen/CommandLine/Manual.h"

namespace fagen {

namespace {

struct Kind {
  std::string_view name;
  std::string (*print)(const Manual &);
};

constexpr Kind kKinds[] = {
    {"man", printManPage}, {"bash", printBashCompletion}, {"zsh", printZshCompletion}, {"fish", printFishCompletion}};

} // namespace

std::optional<std::string> generate(const Manual &manual, std::string_view kind) {
  for (const Kind &known : kKinds)
    if (known.name == kind)
      return known.print(manual);
  return std::nullopt;
}

std::optional<std::string_view> generatedKind(int argc, const char *const *argv) {
  constexpr std::string_view kOption = "--generate=";
  const std::string_view argument = argc == 2 ? argv[1] : "";
  if (argument.substr(0, kOption.size()) != kOption)
    return std::nullopt;
  for (const Kind &known : kKinds)
    if (argument.substr(kOption.size()) == known.name)
      return known.name;
  return std::nullopt;
}

} // namespace fagen
