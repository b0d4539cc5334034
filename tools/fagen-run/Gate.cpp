// fagen: fagen-run gate: enforces the spec's require.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Command.h"
#include "TimingOptions.h"
#include "lab/device/gpu_reference.h"
#include "lab/gate/gate_report.h"
#include "lab/support/write_file.h"
#include "lab/time/gpu_timing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iostream>

namespace fagen::lab {

namespace {

class GateCommand : public Command {
public:
  GateCommand()
      : Command("gate", "enforce the spec's require: build, resources, launch, ..., speed; exit 2 on a failure") {}

  void addOptions(CLI::App &app) override {
    timing.device = "auto";
    timing.declare(
        app, "auto, gpu, cpu (the emulator; speed is skipped), simulated:FILE.json (the emulator, and recorded times)");
    app.add_option(
        "--suite", suite,
        fmt::format("of correctness: {} (default: full on a GPU, smoke on the CPU)", fmt::join(suiteNames(), ", ")));
    app.add_option("--variant", variants, "judge only this variant; may be repeated");
    app.add_flag("--strict", strict, "a skipped stage counts as a failed one");
    app.add_option("--junit", junit, "also write JUnit XML to this file");
    app.footer(
        "Examples:\n"
        "  fagen-run gate generated/l4_fp16                            every gate of the spec; the GPU, if there is "
        "one\n"
        "  fagen-run gate generated --device cpu --junit gates.xml     without speed, for CI\n"
        "Exit codes: 0 all gates pass, 1 your mistake, 2 a gate failed, 70 a fault of fagen-run or of the machine.");
  }

  int run() override {
    auto sets = loadKernelSets(directories);
    requireVariants(sets, variants);
    GateOptions options = gateOptions();
    if (options.check.deviceFlag == "gpu") {
      GpuTiming gpu;
      GpuReference engine(gpu.device());
      engine.requireAgreement();
      GateDevices devices{gpu.device(), engine, &gpu, gpu.computeCapability()};
      return finish(runGate(sets, devices, options, ProgressLine()), options, envelope(gpu.gpu()));
    }
    auto device = makeEmulatorDevice();
    CpuReference engine;
    std::unique_ptr<TimingDevice> recorded;
    if (isSimulated(timing.device))
      recorded = makeTimingDevice(timing.device);
    GateDevices devices{*device, engine, recorded.get(), 0};
    return finish(runGate(sets, devices, options, ProgressLine()), options, envelope(nullptr));
  }

private:
  GateOptions gateOptions() const {
    GateOptions options;
    options.time = timing.options();
    std::string device = timing.device == "auto" ? (hasGpu() ? "gpu" : "cpu") : timing.device;
    if (device != "gpu" && device != "cpu" && !isSimulated(device))
      throw UserError(fmt::format("unknown device '{}'; known: auto, gpu, cpu, simulated:FILE.json", device));
    options.check.deviceFlag = device == "gpu" ? "gpu" : "cpu"; // recorded times stand next to the emulator
    options.check.suite = !suite.empty() ? suite : device == "gpu" ? "full" : "smoke";
    requireSuite(options.check.suite);
    options.check.variants = variants;
    options.check.seed = options.time.seed;
    options.strict = strict;
    return options;
  }

  int finish(const GateReport &report, const GateOptions &options, Json json) {
    json["gate"] = gateJson(report, options);
    deliver(gateTable(report), json);
    std::cerr << gateReasons(report);
    bool passed = report.passed(options);
    fmt::print(stderr, "{}: {} variants\n", passed ? "PASS" : "FAIL", report.variants.size());
    if (!junit.empty())
      writeFile(junit, gateJUnit(report, options));
    return passed ? kOk : kFailedCheck;
  }

  TimingFlags timing;
  std::string suite, junit;
  std::vector<std::string> variants;
  bool strict = false;
};

} // namespace

std::unique_ptr<Command> makeGateCommand() { return std::make_unique<GateCommand>(); }

} // namespace fagen::lab
