// fagen: programs on the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "apart.h"
#include "run.h"

#include "emulator/emulator.h"
#include "lab/cases/problem.h"

#include <cstring>
#include <fmt/format.h>

namespace fagen::lab {

namespace {

/// So few that the CTAs of a persistent kernel have several tiles each.
constexpr int64_t kEmulatedSms = 2;

class EmulatedProgram : public ProgramRunner {
public:
  std::string name() const override { return "emulator"; }
  int64_t sms() const override { return kEmulatedSms; }

  std::vector<Failure> run(const ProgramPlan &plan, const Sizes &sizes, ProgramMemory &memory, int attempt) override {
    if (!module || source != plan.source) {
      std::string refusal;
      source = plan.source;
      if (!(module = emulator::Module::compile(source, refusal)))
        return {{"compile", refusal}};
    }
    const BuffersApart apart(memory);
    std::vector<const void *> addresses;
    for (size_t i = 0; i < memory.size(); ++i)
      addresses.push_back(apart.begin(i));
    const std::vector<unsigned char> params = packParams(
        plan, sizes, addresses, [](const device::TensorMapDescription &map, const ProgramBuffer &, void *place) {
          std::memcpy(place, &map, sizeof(map));
        });
    const std::vector<emulator::Buffer> buffers = describe(plan, memory, apart);
    std::vector<Failure> failures;
    for (const ProgramLaunch &launch : plan.launches)
      if (failures.empty())
        failures = runOne(launch, sizes, buffers, params, attempt);
    apart.copyTo(memory);
    return failures;
  }

private:
  /// Launches share what they know of written bytes.
  static std::vector<emulator::Buffer> describe(const ProgramPlan &plan, const ProgramMemory &memory,
                                                const BuffersApart &apart) {
    std::vector<emulator::Buffer> buffers;
    for (size_t i = 0; i < memory.size(); ++i) {
      const ProgramBuffer &buffer = plan.buffers[i];
      emulator::Buffer &made =
          buffers.emplace_back(emulator::Buffer{apart.begin(i), memory[i].size(), buffer.isWritten, buffer.name});
      made.elementBytes = static_cast<unsigned>(bytesOf(buffer.element));
      if (buffer.isWritten && !buffer.isZeroed)
        made.written = std::make_shared<std::vector<unsigned char>>(memory[i].size());
    }
    return buffers;
  }

  std::vector<Failure> runOne(const ProgramLaunch &launch, const Sizes &sizes,
                              const std::vector<emulator::Buffer> &buffers, const std::vector<unsigned char> &params,
                              int attempt) const {
    static constexpr emulator::Options::Landing kLandings[] = {emulator::Options::Latest, emulator::Options::Earliest,
                                                               emulator::Options::Random};
    emulator::Launch emulated;
    emulated.symbol = launch.symbol;
    emulated.grid = ctasOf(launch, sizes);
    emulated.threads = launch.threads;
    emulated.cluster = launch.cluster;
    emulated.sharedBytes = static_cast<size_t>(launch.sharedBytes.evaluate(sizes));
    emulated.buffers = buffers;
    if (launch.isResident)
      emulated.workers = emulated.grid;
    if (emulated.grid == 0)
      return {};
    emulator::Options options;
    options.landing = kLandings[attempt % 3];
    options.seed = static_cast<uint64_t>(attempt);
    const emulator::Report report = module->launch(emulated, params.data(), params.size(), options);
    std::vector<Failure> failures;
    for (const emulator::Finding &finding : report.findings)
      failures.push_back({"emulator",
                          fmt::format("{}:{}: {}: {}", finding.file, finding.line, finding.kind, finding.message),
                          std::make_shared<emulator::Finding>(finding)});
    if (!report.ok && failures.empty())
      failures.push_back({"emulator", "the launch failed without a finding"});
    return failures;
  }

  std::unique_ptr<emulator::Module> module;
  std::string source; ///< what the module was made of
};

} // namespace

std::unique_ptr<ProgramRunner> makeEmulatedProgram() { return std::make_unique<EmulatedProgram>(); }

} // namespace fagen::lab
