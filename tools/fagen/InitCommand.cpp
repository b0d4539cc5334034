// fagen: `fagen init`: a commented spec to start from.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Command.h"
#include "InitSpec.h"
#include "fagen/Output/OutputFile.h"
#include "fagen/Target/GpuNames.h"

#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace fagen {

static constexpr const char kInitExamples[] = R"(
EXAMPLES:
  fagen init --gpu=h200 --head-dim=128
      prints a spec for Hopper: f16, without a mask and causal
  fagen init --gpu=rtx4090 --head-dim=64 --dtype=bf16 --mask=causal -o attention.fa
      writes a file, which must not be there yet
  fagen init --gpu=sm_90 --head-dim=192:128 --name=mla
      with other head dims of Q and K than of V

EXIT CODES: 0 done; 1 a mistake on the command line; 70 a mistake of fagen's own. Unless the exit code is 0, nothing is
written.
)";

namespace {

enum class InitMask : uint8_t { Both, None, Causal };
enum class InitType : uint8_t { F16, Bf16 };

class InitCommand : public Command {
public:
  InitCommand() : Command("init", "write a commented spec to start from", kInitExamples) {}
  ExitCode run(const char *argv0) override;

private:
  void readGpu(InitProblem &problem, Diagnostics &diags) const;
  void readHeadDim(InitProblem &problem, Diagnostics &diags) const;
  void write(StringRef text, Diagnostics &diags) const;

  cl::opt<std::string> gpu{"gpu",
                           cl::value_desc("name or sm_NN"),
                           cl::Required,
                           cl::cat(category),
                           cl::sub(subcommand),
                           cl::desc("whose instructions and shared memory the kernels use: h200, rtx4090, sm_86")};
  cl::opt<std::string> headDim{"head-dim",          cl::value_desc("N or N:M"),
                               cl::Required,        cl::cat(category),
                               cl::sub(subcommand), cl::desc("head dim; N:M for N of Q and K and M of V")};
  ChoiceOption<InitType> dtype{
      "dtype",
      cl::desc("element type of Q, K, V and O"),
      cl::init(InitType::F16),
      cl::cat(category),
      cl::sub(subcommand),
      cl::values(clEnumValN(InitType::F16, "f16", "half precision"), clEnumValN(InitType::Bf16, "bf16", "bfloat16"))};
  ChoiceOption<InitMask> mask{"mask",
                              cl::desc("which keys a row sees"),
                              cl::init(InitMask::Both),
                              cl::cat(category),
                              cl::sub(subcommand),
                              cl::values(clEnumValN(InitMask::Both, "both", "kernels for none and for causal"),
                                         clEnumValN(InitMask::None, "none", "all"),
                                         clEnumValN(InitMask::Causal, "causal", "none after its own place"))};
  cl::opt<std::string> name{"name",
                            cl::value_desc("word"),
                            cl::desc("the kernel's name (default: attention)"),
                            cl::init("attention"),
                            cl::cat(category),
                            cl::sub(subcommand)};
  cl::opt<std::string> output{"o", cl::value_desc("file"), cl::desc("a file that is not there yet (default: stdout)"),
                              cl::cat(category), cl::sub(subcommand)};
  DiagnosticsFlag diagnostics{category, subcommand};
};

} // namespace

/// Of a compute capability; null: fagen has none of its own for it.
static const TargetInfo *ownTargetOf(unsigned sm) {
  return lookupTarget("sm_" + std::to_string(sm) + (sm == 90 ? "a" : "")); // wgmma is sm_90a's
}

void InitCommand::readGpu(InitProblem &problem, Diagnostics &diags) const {
  problem.gpu = gpu;
  const std::optional<NamedGpu> named = gpuNamed(gpu.getValue());
  const unsigned sm = named ? named->sm : 0;
  problem.target = ownTargetOf(sm);
  if (!problem.target)
    diags.error(Location(),
                "--gpu=" + gpu + " is not a GPU that fagen has kernels for; it takes sm_80, sm_86, sm_89, " +
                    "sm_90, or a GPU of these: " + gpuNames([](unsigned sm) { return ownTargetOf(sm) != nullptr; }) +
                    (sm > 90 ? "; the kernels of sm_89 run on it" : ""));
}

void InitCommand::readHeadDim(InitProblem &problem, Diagnostics &diags) const {
  const auto [first, second] = StringRef(headDim).split(':');
  const bool isPair = StringRef(headDim).contains(':');
  if (first.getAsInteger(10, problem.headDim) || (isPair && second.getAsInteger(10, problem.headDimV))) {
    diags.error(Location(), "--head-dim takes a number, or two with ':' between them, not '" + headDim + "'");
    return;
  }
  if (!isPair)
    problem.headDimV = problem.headDim;
  for (unsigned dim : {problem.headDim, problem.headDimV})
    if (dim == 0 || dim > 256 || dim % 16 != 0)
      return diags.error(Location(),
                         "--head-dim=" + headDim + ": tensor cores take multiples of 16 up to 256; pad the tensors");
}

void InitCommand::write(StringRef text, Diagnostics &diags) const {
  if (output.empty() || output == "-") {
    outs() << text;
    return;
  }
  if (sys::fs::exists(output)) {
    diags.error(Location(), "'" + output + "' is there already; remove it first, or give another -o");
    return;
  }
  if (std::string problem = writeOutput(output, text); !problem.empty())
    diags.error(Location(), problem);
}

ExitCode InitCommand::run(const char *) {
  SourceMgr noSources;
  Diagnostics diags(noSources, errs());
  diags.setFormat(diagnostics.get());
  InitProblem problem;
  problem.kernel = name;
  problem.dtype = dtype == InitType::Bf16 ? "bf16" : "f16";
  problem.mask = mask == InitMask::Both ? "[none, causal]" : mask == InitMask::None ? "none" : "causal";
  readGpu(problem, diags);
  readHeadDim(problem, diags);
  if (diags.hasErrors())
    return kUserMistake;
  if (std::optional<std::string> text = initSpec(problem))
    write(*text, diags);
  else
    diags.error(Location(), "no spec of kernel '" + name + "' with head dim " + headDim + " on " +
                                problem.target->name +
                                " passes the checks; the name must be a C identifier, and tiles must fit");
  return diags.hasErrors() ? kUserMistake : kDone;
}

std::unique_ptr<Command> makeInitCommand() { return std::make_unique<InitCommand>(); }

} // namespace fagen
