// fagen: the driver's command line.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CommandLine.h"

#include "Command.h"
#include "Describe.h"
#include "arguments/CommandLineMistakes.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Process.h"

using namespace llvm;

namespace fagen {

static constexpr const char kDriverExamples[] = R"(
`fagen check SPEC...`, `fagen fmt SPEC...` and `fagen init` do other things: `fagen check --help`. A spec whose file has
such a name is written ./check.

EXAMPLES:
  fagen specs/l4_fp16.fa -o generated
      writes generated/l4_fp16/: a .cu for each variant and target, table.h, table.cpp, manifest.json, CMakeLists.txt
  fagen specs/l4_fp16.fa --emit=spec
      prints every variant with every key and where it was set
  fagen specs/l4_fp16.fa --emit=cuda --variant=l4_fp16_prefill_f16_d64_none
      prints one kernel
  fagen specs/l4_fp16.fa --emit=single -o attn
      writes attn.h and attn.cu, which need no fagen: selection in C, kernels, launch (docs/Embedding.md)
  fagen specs/l4_fp16.fa --emit=barriers --variant=l4_fp16_prefill_f16_d64_none
      shows why each barrier of a kernel is there
  fagen specs/l4_fp16.fa --emit=ir --stop-after=pipeline-loads
      prints the IR after a pass
  fagen specs/l4_fp16.fa -o generated --check-resources
      also compiles each kernel and compares registers, spills and shared memory with the spec's require
  fagen specs/l4_fp16.fa -o generated --tuned=results.db
      takes values and thresholds from times that fagen-run tune measured
  fagen specs/l4_fp16.fa -o instrumented --instrument
      kernels for fagen-run breakdown
  fagen specs/l4_fp16.fa norm.fair -o generated
      also takes a program of the IR, as a row that is called by its name (docs/Programs.md)
  fagen specs/l4_fp16.fa -o generated --diagnostics=json
      gives each mistake as a line of JSON, for editors and scripts (docs/Tools.md)

EXIT CODES: 0 done; 1 a mistake in a spec or on the command line; 2 a gate failed; 70 a mistake of fagen's own.
Unless the exit code is 0, nothing is written.
)";

static constexpr const char kOverview[] =
    "fagen: attention specs (.fa) to readable CUDA, a dispatch table and a manifest";

namespace {

/// What main() prints before it parses; its kinds are in fagen/CommandLine/Manual.h.
enum class Generated : uint8_t { None, Man, Bash, Zsh, Fish };

/// The options as LLVM's command line library knows them; they live while the command line is parsed.
struct Flags {
  cl::OptionCategory category{"fagen"};
  cl::list<std::string> specs{cl::Positional, cl::OneOrMore, cl::desc("SPEC... [PROGRAM.fair...]"), cl::cat(category)};
  cl::opt<std::string> output{"o", cl::value_desc("path"), cl::cat(category),
                              cl::desc("directory to write the kernel sets to; with --emit, a file (default: stdout)")};
  cl::opt<std::string> set{"set", cl::value_desc("name"), cl::cat(category),
                           cl::desc("kernel set that programs (.fair) stand in: a spec's kernel, or one of their own "
                                    "(default: the only kernel, else the first program's name)")};
  ChoiceOption<EmitKind> emit{
      "emit", cl::desc("print this instead of writing kernel sets"), cl::init(EmitKind::Files), cl::cat(category),
      cl::values(
          clEnumValN(EmitKind::Spec, "spec", "the resolved spec: every variant, every key"),
          clEnumValN(EmitKind::Plan, "plan", "tiles, buffers, barriers and estimates of every variant"),
          clEnumValN(EmitKind::IR, "ir", "the IR after the last pass"),
          clEnumValN(EmitKind::Cuda, "cuda", "the kernels' CUDA C++"),
          clEnumValN(EmitKind::Ptx, "ptx", "what nvcc makes of them"),
          clEnumValN(EmitKind::Cubin, "cubin", "machine code of one variant (see --variant)"),
          clEnumValN(EmitKind::Table, "table", "the dispatch table"),
          clEnumValN(EmitKind::Single, "single", "two files, <-o>.h and <-o>.cu, that nvcc compiles without fagen"),
          clEnumValN(EmitKind::Barriers, "barriers", "each barrier and wait, the hazards it covers, and its partners"),
          clEnumValN(EmitKind::Mutants, "mutants",
                     "each barrier and wait disabled, weakened, moved, and what the analysis says of it"))};
  cl::list<std::string> targets{"target", cl::value_desc("sm_NN"), cl::CommaSeparated, cl::cat(category),
                                cl::desc("build for these targets instead of those that the specs name")};
  cl::list<std::string> variants{"variant", cl::value_desc("name"), cl::CommaSeparated, cl::cat(category),
                                 cl::desc("emit only these variants")};
  cl::opt<bool> json{"json", cl::cat(category),
                     cl::desc("with --emit=barriers, plan or spec: JSON instead of a table")};
  cl::list<std::string> shapes{
      "shape", cl::value_desc("b,h,hkv,sq,sk,d"), cl::cat(category),
      cl::desc("with --emit=plan: what the model says of these problems (docs/internals/Model.md)")};
  cl::opt<std::string> gpu{"gpu", cl::value_desc("sm_NN or name"), cl::cat(category),
                           cl::desc("with --shape: on this GPU (rtx4090) instead of the target's")};
  cl::opt<bool> checkResources{"check-resources", cl::cat(category),
                               cl::desc("compile with nvcc and check registers, spills and shared memory")};
  cl::list<unsigned> cubins{
      "cubins", cl::value_desc("NN"), cl::CommaSeparated, cl::cat(category),
      cl::desc("in addition to the sources: machine code by nvcc for these compute capabilities (80,90)")};
  ChoiceOption<Instrument> instrument{
      "instrument",
      cl::ValueOptional,
      cl::init(Instrument::None),
      cl::cat(category),
      cl::desc("kernels that also tell where their time goes (docs/Breakdown.md)"),
      cl::values(
          clEnumValN(Instrument::Stages, "stages", "clocks of each stage, by warp, sampled in long loops; the default"),
          clEnumValN(Instrument::Stages, "", ""),
          clEnumValN(Instrument::Every, "every", "clocks of every step: exact, and slower"),
          clEnumValN(Instrument::Trace, "trace", "of every step, and the first steps of some CTAs, stage by stage"))};
  cl::opt<bool> remarks{"remarks", cl::desc("print which tune combinations are dropped, and why"), cl::cat(category)};
  cl::opt<std::string> tuned{"tuned", cl::value_desc("file"), cl::cat(category),
                             cl::desc("take values and thresholds from these times of fagen-run tune (docs/Tuning.md): "
                                      "its database, or what --export wrote")};
  cl::opt<std::string> deviceInclude{"device-include", cl::value_desc("dir"), cl::cat(category),
                                     cl::desc("where fagen/device is (default: FAGEN_DEVICE_INCLUDE, or found "
                                              "from the executable's place)")};
  cl::opt<std::string> nvcc{"nvcc", cl::value_desc("path"), cl::cat(category),
                            cl::desc("nvcc (default: FAGEN_NVCC, or found on PATH)")};
  DiagnosticsFlag diagnostics{category, cl::SubCommand::getTopLevel()};
  ChoiceOption<Generated> generate{
      "generate", cl::desc("alone: print a manual page, or what completes this command line in a shell"),
      cl::cat(category),
      cl::values(clEnumValN(Generated::Man, "man", "a manual page"),
                 clEnumValN(Generated::Bash, "bash", "a completion; eval \"$(fagen --generate=bash)\" loads it"),
                 clEnumValN(Generated::Zsh, "zsh", "a completion: a file _fagen in a directory of fpath"),
                 clEnumValN(Generated::Fish, "fish", "a completion; fagen --generate=fish | source loads it"))};
};

} // namespace

DiagnosticsFlag::DiagnosticsFlag(cl::OptionCategory &category, cl::SubCommand &subcommand)
    : value("diagnostics", cl::desc("how errors and warnings are printed to standard error"), cl::cat(category),
            cl::sub(subcommand), cl::init(DiagnosticsFormat::Text),
            cl::values(clEnumValN(DiagnosticsFormat::Text, "text", "for people: place, message, the line of the spec"),
                       clEnumValN(DiagnosticsFormat::Json, "json", "for programs: a JSON object a line"))) {}

void setVersionPrinter() {
  cl::SetVersionPrinter([](raw_ostream &os) { os << "fagen " FAGEN_VERSION "\n"; });
}

static std::string orEnvironment(const std::string &value, StringRef name) {
  if (!value.empty())
    return value;
  return sys::Process::GetEnv(name).value_or("");
}

ManualCommand describeCommandLine() {
  Flags flags;
  PipelineFlags pipelineFlags;
  cl::HideUnrelatedOptions({&flags.category, &pipelineFlags.getCategory()});
  return describe(cl::SubCommand::getTopLevel(), kDriverExamples);
}

DriverOptions parseCommandLine(int argc, char **argv) {
  Flags flags;
  PipelineFlags pipelineFlags;
  cl::extrahelp examples(kDriverExamples);
  setVersionPrinter();
  cl::HideUnrelatedOptions({&flags.category, &pipelineFlags.getCategory()});
  parseOrExit(argc, argv, kOverview);

  DriverOptions options;
  for (const std::string &file : flags.specs)
    (StringRef(file).ends_with(".fair") ? options.programs : options.specs).push_back(file);
  options.set = flags.set;
  options.output = flags.output;
  options.targets = flags.targets;
  options.variants = flags.variants;
  options.emit = flags.emit;
  options.json = flags.json;
  options.shapes = flags.shapes;
  options.gpu = flags.gpu;
  options.checkResources = flags.checkResources;
  options.cubins = flags.cubins;
  options.showRemarks = flags.remarks;
  options.instrument = flags.instrument;
  options.tuned = flags.tuned;
  options.deviceInclude = orEnvironment(flags.deviceInclude, "FAGEN_DEVICE_INCLUDE");
  options.nvcc = orEnvironment(flags.nvcc, "FAGEN_NVCC");
  options.diagnostics = flags.diagnostics.get();
  options.pipeline = pipelineFlags.get();
  options.pipeline.printOf = options.variants;
  if (!options.pipeline.stopAfter.empty() && options.emit == EmitKind::Files)
    options.emit = EmitKind::IR; // there is nothing else to show of unfinished kernels
  return options;
}

} // namespace fagen
