// fagen: fagen-random: random specs, right ones and wrong ones.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Draw.h"
#include "DrawForms.h"
#include "Mistakes.h"
#include "Text.h"
#include "fagen/Output/OutputFile.h"
#include "fagen/Support/CrashHandler.h"
#include "fagen/Support/StandardOutput.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace llvm;
using namespace fagen::random;

namespace {

constexpr const char kOverview[] =
    "fagen-random: specs with random values of every key. A seed gives the same text on every machine.";

constexpr const char kExamples[] = R"(
EXAMPLES:
  fagen-random --seed 7
      prints a spec that fagen must accept
  fagen-random --invalid --seed 1 --count 500 -o DIR
      writes DIR/invalid-1.fa to invalid-500.fa; each says in its head which mistake was made, and where the error
      must stand
  fagen-random --valid --count 500 --coverage
      prints how often each value of each key stands in the specs, instead of the specs
  fagen-random --forms --seed 3
      prints a spec with several random forms
  fagen-random --valid --target sm_90a --seed 7
      prints a spec for that target

EXIT CODES: 0 done; 1 a mistake on the command line, or a file that cannot be written.
)";

struct Flags {
  cl::OptionCategory category{"fagen-random"};
  cl::opt<uint64_t> seed{"seed", cl::desc("of the first spec"), cl::init(1), cl::cat(category)};
  cl::opt<unsigned> count{"count", cl::desc("how many specs, of consecutive seeds"), cl::init(1), cl::cat(category)};
  cl::opt<bool> valid{"valid", cl::desc("specs that fagen must accept (default)"), cl::cat(category)};
  cl::opt<bool> invalid{"invalid", cl::desc("specs with one mistake each"), cl::cat(category)};
  cl::opt<bool> forms{"forms", cl::desc("right specs of small kernels with random forms"), cl::cat(category)};
  cl::opt<std::string> target{"target", cl::value_desc("name"), cl::desc("of every spec (default: any)"),
                              cl::cat(category)};
  cl::opt<std::string> output{"o", cl::value_desc("dir"), cl::desc("write files there (default: print)"),
                              cl::cat(category)};
  cl::opt<bool> coverage{"coverage", cl::desc("print how often each value is set, or each mistake made"),
                         cl::cat(category)};
  cl::extrahelp examples{kExamples};
};

/// Whether only a form can have it: random schedules are for masks, which bound no scores.
bool isForForms(const fagen::OptionInfo &option, const fagen::OptionValueInfo &value) {
  return option.key == fagen::OptionKey::Rescale && value.text == toString(fagen::RescalePolicy::None);
}

/// How often each value of each key was set.
class Coverage {
public:
  Coverage(bool isInvalid) {
    if (isInvalid) {
      for (const std::string &mistake : allMistakes())
        add(mistake, 0);
      return;
    }
    for (const fagen::OptionInfo &option : fagen::allOptions()) {
      if (option.type == fagen::OptionType::Switch)
        add(option.name.str() + " on", 0), add(option.name.str() + " off", 0);
      for (unsigned bytes : option.allowed)
        add(fmt::format("{} {} B", option.name.str(), bytes), 0);
      for (const fagen::OptionValueInfo &value : option.values)
        if (!value.notYet && !isForForms(option, value))
          add(option.name.str() + " " + value.text.str(), 0);
    }
  }

  void add(const std::string &what, unsigned times = 1) {
    if (counts.insert({what, 0}).second)
      order.push_back(what);
    counts[what] += times;
  }

  void add(const std::vector<Node> &nodes) {
    for (const Node &node : nodes) {
      add(node.body);
      if (node.option)
        add(*node.option, node.value);
    }
  }

  void print() const {
    for (const std::string &what : order)
      outs() << fmt::format("{:6} {}\n", counts.at(what), what);
  }

private:
  void add(const fagen::OptionInfo &option, StringRef value) {
    const std::string key = option.name.str() + " ";
    SmallVector<StringRef> words;
    SplitString(value, words, "[](), ");
    for (StringRef word : words)
      if (counts.count(key + word.str()))
        add(key + word.str());
    for (unsigned bytes : option.allowed)
      if (value.contains(std::to_string(bytes)))
        add(fmt::format("{}{} B", key, bytes));
    if (value.contains("tune"))
      add("tune of " + option.name.str());
    if (value.contains('['))
      add("axis of " + option.name.str());
  }

  std::vector<std::string> order;
  std::map<std::string, unsigned> counts;
};

std::string targetNames() {
  std::string names;
  for (const fagen::TargetInfo &target : fagen::allTargets())
    names += (names.empty() ? "" : ", ") + target.name.str();
  return names;
}

class Generator {
public:
  explicit Generator(const Flags &flags) : flags(flags), coverage(flags.invalid) {}

  int run() {
    if (flags.valid + flags.invalid + flags.forms > 1) {
      errs() << "fagen-random: error: --valid, --invalid and --forms exclude each other\n";
      return 1;
    }
    if (!flags.target.empty() && !(target = fagen::lookupTarget(flags.target))) {
      errs() << "fagen-random: error: unknown target '" << flags.target << "'; it is " << targetNames() << "\n";
      return 1;
    }
    if (!flags.output.empty() && sys::fs::create_directories(flags.output)) {
      errs() << "fagen-random: error: cannot make the directory '" << flags.output << "'\n";
      return 1;
    }
    for (unsigned i = 0; i != flags.count; ++i)
      if (!writeSpec(flags.seed + i))
        return 1;
    if (flags.coverage)
      coverage.print();
    return 0;
  }

private:
  bool writeSpec(uint64_t seed) {
    Random random(seed * 2 + flags.invalid);
    if (flags.forms)
      return deliver(seed, fmt::format("// fagen-random --forms --seed {}{}\n", seed, ofTarget()) +
                               drawFormsSpec(random, target));
    return deliver(seed, flags.invalid ? wrongText(seed, random) : rightText(seed, random));
  }

  std::string rightText(uint64_t seed, Random &random) {
    Spec spec = drawSpec(random, target);
    const std::vector<Node> nodes = toNodes(spec, random);
    coverage.add(nodes);
    return fmt::format("// fagen-random --valid --seed {}{}\n", seed, ofTarget()) + print(nodes, 2, random).text;
  }

  std::string wrongText(uint64_t seed, Random &random) {
    const WrongSpec wrong = drawWrongSpec(random, target, seed);
    coverage.add(wrong.mistake);
    PrintedText printed = print(wrong.nodes, 3, random);
    if (printed.wrongLines.empty())
      printed.wrongLines = {1};
    return fmt::format("// fagen-random --invalid --seed {}{}: {}\n// an error in line {}, and in no other\n", seed,
                       ofTarget(), wrong.mistake, fmt::join(printed.wrongLines, ", ")) +
           printed.text;
  }

  bool deliver(uint64_t seed, const std::string &text) {
    if (flags.output.empty()) {
      if (!flags.coverage)
        outs() << text;
      return true;
    }
    SmallString<128> path(flags.output);
    sys::path::append(path, fmt::format("{}-{}.fa", flags.invalid ? "invalid" : flags.forms ? "forms" : "valid", seed));
    const std::string problem = fagen::writeOutput(path.str().str(), text);
    if (!problem.empty())
      errs() << "fagen-random: error: " << problem << "\n";
    return problem.empty();
  }

  std::string ofTarget() const { return target ? " --target " + target->name.str() : ""; }

  const Flags &flags;
  Coverage coverage;
  const fagen::TargetInfo *target = nullptr; ///< null: any
};

} // namespace

int main(int argc, char **argv) {
  fagen::reportCrashes("fagen-random");
  fagen::checkStandardOutputAtExit("fagen-random");
  Flags flags;
  cl::HideUnrelatedOptions(flags.category);
  cl::ParseCommandLineOptions(argc, argv, kOverview);
  return Generator(flags).run();
}
