// fagen: compiles and launches the small kernels of these tests.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "emulator/emulator.h"

#include <fstream>
#include <gtest/gtest.h>
#include <map>

namespace fagen::emulator {

/// The kernels' one argument, as in kernels/arguments.h.
struct Arguments {
  const void *in = nullptr;
  void *out = nullptr;
  int count = 0;
};

inline std::string kernelPath(const std::string &file) { return FAGEN_TEST_KERNELS "/" + file; }

inline Module &kernels(const std::string &file) {
  static std::map<std::string, std::unique_ptr<Module>> modules;
  std::unique_ptr<Module> &module = modules[file];
  std::string error;
  if (!module)
    module = Module::compile(kernelPath(file), error);
  if (!module) {
    ADD_FAILURE() << error;
    std::abort();
  }
  return *module;
}

/// The line of a kernel file that ends in the comment "// [mark]".
inline int lineOf(const std::string &file, const std::string &mark) {
  std::ifstream in(kernelPath(file));
  std::string line;
  for (int number = 1; std::getline(in, line); ++number)
    if (line.ends_with("// [" + mark + "]"))
      return number;
  ADD_FAILURE() << "no line of " << file << " is marked [" << mark << "]";
  return 0;
}

struct KernelRun {
  std::string file;
  std::string symbol;
  unsigned grid = 1;
  unsigned threads = 32;
  size_t sharedBytes = 0;
  Options options{};
  int count = 0;
  std::vector<LineInfo> lines = {};
};

/// `in` is read-only, `out` writable.
template <class In, class Out> Report launch(const KernelRun &run, const std::vector<In> &in, std::vector<Out> &out) {
  const Launch launch = {
      run.symbol,
      run.grid,
      run.threads,
      run.sharedBytes,
      {{in.data(), in.size() * sizeof(In), false, "in"}, {out.data(), out.size() * sizeof(Out), true, "out"}},
      0,
      run.lines};
  const Arguments arguments = {in.data(), out.data(), run.count};
  return kernels(run.file).launch(launch, &arguments, sizeof(arguments), run.options);
}

inline std::string text(const Report &report) {
  std::string all;
  for (const Finding &finding : report.findings)
    all += finding.file + ":" + std::to_string(finding.line) + ": " + finding.kind + ": " + finding.message + "\n";
  return all;
}

/// The report holds exactly one finding: of this kind, at the line marked with it.
inline void expectOnly(const Report &report, const std::string &kind, const std::string &file,
                       const std::string &mark) {
  EXPECT_FALSE(report.ok);
  ASSERT_EQ(report.findings.size(), 1u) << text(report);
  EXPECT_EQ(report.findings[0].kind, kind) << text(report);
  EXPECT_EQ(report.findings[0].file, kernelPath(file));
  EXPECT_EQ(report.findings[0].line, lineOf(file, mark)) << text(report);
}

} // namespace fagen::emulator
