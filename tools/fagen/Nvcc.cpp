// fagen: nvcc, for what the driver asks of it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Nvcc.h"

#include "fagen/Output/OutputFile.h"
#include "fagen/Support/Diagnostics.h"
#include "fagen/Support/OutputSet.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace fagen {

//===-- Finding
//----------------------------------------------------------------------------------------------------===//

/// nvcc on PATH, or in the CUDA Toolkit that the environment names.
static std::string findNvcc() {
  if (ErrorOr<std::string> found = sys::findProgramByName("nvcc"))
    return *found;
  for (StringRef variable : {"CUDA_HOME", "CUDA_PATH"}) {
    std::optional<std::string> root = sys::Process::GetEnv(variable);
    SmallString<128> path(root.value_or(""));
    sys::path::append(path, "bin", "nvcc");
    if (root && sys::fs::can_execute(path))
      return path.str().str();
  }
  return {};
}

static bool hasDeviceHeaders(StringRef directory) {
  SmallString<128> path(directory);
  sys::path::append(path, "fagen", "device", "params.h");
  return sys::fs::exists(path);
}

/// The directory that holds fagen/device: include/ next to an installed bin/, or runtime/include of a source tree that
/// the build tree lies in.
static std::string findDeviceInclude(const char *argv0) {
  static int anchor;
  std::string executable = sys::fs::getMainExecutable(argv0, &anchor);
  for (StringRef directory = sys::path::parent_path(executable); !directory.empty();
       directory = sys::path::parent_path(directory)) {
    for (StringRef below : {"include", "runtime/include"}) {
      SmallString<128> candidate(directory);
      sys::path::append(candidate, below);
      if (hasDeviceHeaders(candidate))
        return candidate.str().str();
    }
  }
  return {};
}

Nvcc::Nvcc(StringRef givenProgram, StringRef deviceInclude, const char *argv0)
    : program(givenProgram.empty() ? findNvcc() : givenProgram.str()),
      includeDirectory(deviceInclude.empty() ? findDeviceInclude(argv0) : deviceInclude.str()) {
  if (program.empty() || !sys::fs::can_execute(program))
    missingPart = program.empty() ? "no nvcc on PATH" : "no nvcc at '" + program + "'";
  else if (!hasDeviceHeaders(includeDirectory))
    missingPart = "no device headers; --device-include says where fagen/device is";
}

//===-- Compiling
//--------------------------------------------------------------------------------------------------===//

int Nvcc::run(ArrayRef<StringRef> arguments, StringRef log, std::string &problem) const {
  std::vector<StringRef> all = {program};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const std::optional<StringRef> redirects[] = {StringRef(""), log, log};
  return sys::ExecuteAndWait(program, all, std::nullopt, redirects, /*SecondsToWait=*/0, /*MemoryLimit=*/0, &problem);
}

std::string Nvcc::version() const {
  SmallString<128> log;
  if (sys::fs::createTemporaryFile("fagen", "log", log))
    return {};
  auto cleanUp = make_scope_exit([&] { sys::fs::remove(log); });
  std::string problem;
  if (run({"--version"}, log, problem) != 0)
    return {};
  SmallVector<StringRef, 2> found;
  const std::string text = readFile(log.str()).value_or("");
  return Regex(", V([0-9]+\\.[0-9]+\\.[0-9]+)").match(text, &found) ? found[1].str() : "";
}

/// The versions of nvcc in evidence/compile/toolchains.json (test/Driver/toolchains.test), by which no shipped kernel
/// spills, is warned of, or multiplies, copies or waits otherwise.
static constexpr StringLiteral kCompared[] = {"13.0.88", "13.1.115", "13.5.37"};

void Nvcc::warnOfOtherVersion(Diagnostics &diags) const {
  const std::string number = version();
  if (!is_contained(kCompared, number))
    diags.warning(Location(), "nvcc " + Twine(number.empty() ? "of unknown version" : number) +
                                  " is none of those that shipped kernels were compared by, " +
                                  join(ArrayRef(kCompared), ", ") +
                                  "; check its kernels on a GPU: fagen-run check DIR");
}

Nvcc::Result Nvcc::compile(StringRef source, StringRef target, StringRef kind) const {
  Result result;
  SmallString<128> directory;
  if (std::error_code code = sys::fs::createUniqueDirectory("fagen", directory)) {
    result.log = "cannot make a temporary directory: " + code.message();
    return result;
  }
  auto cleanUp = make_scope_exit([&] { sys::fs::remove_directories(directory); });
  auto inDirectory = [&](StringRef name) { return (directory + "/" + name).str(); };
  std::string input = inDirectory("kernel.cu"), output = inDirectory("kernel.out"), log = inDirectory("log");
  if (result.log = writeOutput(input, source); !result.log.empty())
    return result;

  std::string arch = ("-arch=" + target).str(), mode = ("-" + kind).str(), problem;
  int code = run({"-std=c++17", "--expt-relaxed-constexpr", "-O3", arch, "-I", includeDirectory, "-Xptxas", "-v", mode,
                  "-o", output, input},
                 log, problem);
  result.log = readFile(log).value_or("") + problem;
  std::optional<std::string> text = readFile(output);
  result.ok = code == 0 && text.has_value();
  result.output = text.value_or("");
  return result;
}

//===-- ptxas
//------------------------------------------------------------------------------------------------------===//

/// The number that stands before `unit` in a line; 0 when there is none.
static uint64_t numberBefore(StringRef line, StringRef unit) {
  size_t at = line.find(unit);
  if (at == StringRef::npos)
    return 0;
  StringRef before = line.take_front(at).rtrim();
  uint64_t number = 0;
  before.take_back(before.size() - (before.find_last_not_of("0123456789") + 1)).getAsInteger(10, number);
  return number;
}

// ptxas info    : Function properties for fagen_x
//     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
// ptxas info    : Used 168 registers, used 1 barriers, 400 bytes cmem[0]
std::optional<PtxasFigures> parsePtxas(StringRef text, StringRef symbol) {
  std::optional<PtxasFigures> figures;
  bool isOurs = false;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    if (line.contains("Compiling entry function"))
      isOurs = line.contains(("'" + symbol + "'").str());
    if (!isOurs)
      continue;
    if (line.contains("spill stores")) {
      figures = figures.value_or(PtxasFigures());
      figures->spillBytes = numberBefore(line, "bytes spill stores") + numberBefore(line, "bytes spill loads");
    } else if (line.contains(" registers")) {
      figures = figures.value_or(PtxasFigures());
      figures->registers = numberBefore(line, "registers");
      figures->staticShared = numberBefore(line, "bytes smem");
      return figures;
    }
  }
  return std::nullopt;
}

} // namespace fagen
