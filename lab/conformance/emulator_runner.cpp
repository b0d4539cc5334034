// fagen: conformance kernels in the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conformance.h"
#include "emulator/emulator.h"
#include "lab/device/device.h"

#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <tuple>
#include <unistd.h>

namespace fagen::lab {

namespace {

const char *fileOf(KernelText kernels) {
  switch (kernels) {
  case KernelText::Any:
    return "conformance.cu";
  case KernelText::Sm90a:
    return "conformance_sm90a.cu";
  case KernelText::Bytes:
    return "conformance_bytes.cu";
  }
  return "";
}

class EmulatorRunner : public KernelRunner {
public:
  std::string name() const override { return "emulator"; }

  std::string run(const KernelJob &job, const WordList &in, WordList &out) override {
    static constexpr emulator::Options::Landing kLandings[] = {emulator::Options::Latest, emulator::Options::Earliest,
                                                               emulator::Options::Random};
    emulator::Launch launch;
    launch.symbol = job.symbol;
    launch.grid = job.grid;
    launch.threads = job.threads;
    launch.sharedBytes = job.sharedBytes;
    launch.cluster = job.cluster;
    launch.buffers = {{in.data(), in.size() * 4, false, "in"}, {out.data(), out.size() * 4, true, "out"}};
    emulator::Options options;
    options.landing = kLandings[job.attempt];
    options.seed = static_cast<uint64_t>(job.attempt);
    ConformanceParams params{in.data(), out.data(), out.size()};
    for (auto [shape, words, map] : {std::tuple{&job.inMap, static_cast<const void *>(in.data()), &params.inMap},
                                     std::tuple{&job.outMap, static_cast<const void *>(out.data()), &params.outMap}}) {
      const device::TensorMapDescription description = describeMap(*shape, words);
      std::memcpy(map, &description, sizeof(description));
    }
    const emulator::Report report = moduleOf(job.text).launch(launch, &params, sizeof(params), options);
    if (report.ok)
      return "";
    if (report.findings.empty())
      return "the launch failed without a finding";
    const emulator::Finding &finding = report.findings.front();
    return fmt::format("{}:{}: {}: {}", fileOf(job.kernels), finding.line, finding.kind, finding.message);
  }

private:
  /// The emulator reads files: the text goes to one for as long as it is compiled.
  emulator::Module &moduleOf(const std::string &text) {
    std::unique_ptr<emulator::Module> &module = modules[text];
    if (module)
      return *module;
    std::string path = (std::filesystem::temp_directory_path() / "fagen-conformance-XXXXXX.cu").string();
    const int file = mkstemps(path.data(), 3);
    if (file < 0)
      throw DeviceError(fmt::format("cannot write {}", path));
    close(file);
    std::ofstream(path) << text;
    std::string error;
    module = emulator::Module::compile(path, error);
    std::filesystem::remove(path);
    if (!module)
      throw DeviceError(error);
    return *module;
  }

  std::map<std::string, std::unique_ptr<emulator::Module>> modules;
};

} // namespace

std::unique_ptr<KernelRunner> makeEmulatorRunner() { return std::make_unique<EmulatorRunner>(); }

} // namespace fagen::lab
