// fagen: `fagen check`: everything that could be wrong with a spec, and nothing written.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Command.h"
#include "fagen/Support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace fagen {

static constexpr const char kCheckExamples[] = R"(
EXAMPLES:
  fagen check specs/l4_fp16.fa
      reads the spec, lowers each variant, and proves its barriers
  fagen check specs/l4_fp16.fa --target=sm_80
      the same for another GPU
  fagen check specs/l4_fp16.fa --json
      what was found as one JSON document (docs/Tools.md)

EXIT CODES: 0 sound; 1 a mistake in a spec or on the command line; 2 a gate on shared memory failed; 70 a mistake of
fagen's own.
)";

/// What the compiler printed, a JSON object a line.
static json::Array parseLines(StringRef lines) {
  json::Array found;
  for (StringRef line : split(lines.trim(), '\n'))
    if (Expected<json::Value> value = parseJson(line))
      found.push_back(std::move(*value));
    else
      consumeError(value.takeError());
  return found;
}

namespace {

class CheckCommand : public Command {
public:
  CheckCommand() : Command("check", "find all mistakes of specs, write nothing", kCheckExamples) {}
  ExitCode run(const char *argv0) override;

private:
  cl::list<std::string> specs{cl::Positional, cl::OneOrMore, cl::desc("SPEC..."), cl::cat(category),
                              cl::sub(subcommand)};
  cl::list<std::string> targets{"target",
                                cl::value_desc("sm_NN"),
                                cl::CommaSeparated,
                                cl::cat(category),
                                cl::sub(subcommand),
                                cl::desc("check for these targets instead of those that the specs name")};
  cl::opt<bool> remarks{"remarks", cl::desc("print which tune combinations are dropped, and why"), cl::cat(category),
                        cl::sub(subcommand)};
  cl::opt<bool> json{"json", cl::desc("kernels and diagnostics as one JSON document on standard output"),
                     cl::cat(category), cl::sub(subcommand)};
  DiagnosticsFlag diagnostics{category, subcommand};
};

} // namespace

static void printTable(const Driver &driver) {
  for (const CompiledKernel &kernel : driver.getKernels())
    outs() << driver.pathOf(kernel) << ": " << kernel.spec->name << ": " << kernel.variants.size()
           << " variants are sound\n";
}

static void printJson(const Driver &driver, ExitCode code, StringRef diagnostics) {
  json::Array kernels;
  for (const CompiledKernel &kernel : driver.getKernels())
    kernels.push_back(json::Object{{"spec", json::fixUTF8(kernel.specName)},
                                   {"kernel", kernel.spec->name},
                                   {"variants", int64_t(kernel.variants.size())}});
  outs() << formatv("{0:2}\n", json::Value(json::Object{{"ok", code == kDone},
                                                        {"kernels", std::move(kernels)},
                                                        {"diagnostics", parseLines(diagnostics)}}));
}

ExitCode CheckCommand::run(const char *argv0) {
  DriverOptions options;
  options.specs = specs;
  options.targets = targets;
  options.emit = EmitKind::Nothing;
  options.showRemarks = remarks;
  options.diagnostics = json ? DiagnosticsFormat::Json : diagnostics.get();
  std::string kept;
  raw_string_ostream keptStream(kept);
  // Taking thousands of ops apart would take longer than to leave them to the end of the process.
  Driver &driver = *new Driver(std::move(options), argv0, json ? static_cast<raw_ostream &>(keptStream) : errs());
  const ExitCode code = driver.run();
  if (json)
    printJson(driver, code, kept);
  else if (code == kDone)
    printTable(driver);
  return code;
}

std::unique_ptr<Command> makeCheckCommand() { return std::make_unique<CheckCommand>(); }

} // namespace fagen
