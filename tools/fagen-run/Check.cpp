// fagen: fagen-run check: compares every variant with the f64 reference.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Command.h"
#include "gpu_reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iostream>

namespace fagen::lab {

namespace {

class CheckCommand : public Command {
public:
  CheckCommand() : Command("check", "compare every variant with the f64 reference; exit 2 on a failure") {}

  void addOptions(CLI::App &app) override {
    app.add_option("--device", device, "gpu, cpu (the emulator), auto")->capture_default_str();
    app.add_option("--suite", suite,
                   fmt::format("{} (default: full on a GPU, smoke on the CPU)", fmt::join(suiteNames(), ", ")));
    app.add_option("--variant", variants, "check only this variant; may be repeated");
    app.add_option("--case", cases,
                   "instead of a suite: \"b,h,hkv,sq,sk,d[,dv] [dtype=] [mask=] [inputs=] [layout=] [scale=] "
                   "[lse=off]\"; may be repeated");
    app.add_option("--seed", seed, "of the inputs")->capture_default_str();
  }

  int run() override {
    CheckOptions options = checkOptions();
    auto sets = loadKernelSets(directories);
    requireVariants(sets, options.variants);
    if (options.deviceFlag == "cpu") {
      auto device = makeEmulatorDevice();
      CpuReference engine;
      CheckReport report = runCheck(sets, *device, engine, options, ProgressLine());
      return finishCheck(options, report, envelope(nullptr), device->name());
    }
    GpuDevice device;
    GpuReference engine(device);
    GpuReference::Agreement agreement = engine.requireAgreement();
    CheckReport report = runCheck(sets, device, engine, options, ProgressLine());
    Json json = envelope(&device.gpu);
    json["reference"] = {{"o_gpu_cpu", agreement.o},
                         {"lse_gpu_cpu", agreement.lse},
                         {"plain_error_gpu", agreement.plainGpu},
                         {"plain_error_cpu", agreement.plainCpu}};
    return finishCheck(options, report, std::move(json), device.name());
  }

private:
  CheckOptions checkOptions() const {
    CheckOptions options;
    options.deviceFlag = device == "auto" ? (hasGpu() ? "gpu" : "cpu") : device;
    if (options.deviceFlag != "gpu" && options.deviceFlag != "cpu")
      throw UserError(fmt::format("unknown device '{}'; known: auto, gpu, cpu", options.deviceFlag));
    options.suite = !suite.empty() ? suite : options.deviceFlag == "gpu" ? "full" : "smoke";
    requireSuite(options.suite);
    for (const std::string &text : cases)
      options.cases.push_back(parseCase(text));
    options.variants = variants;
    options.seed = seed;
    return options;
  }

  int finishCheck(const CheckOptions &options, const CheckReport &report, Json json, const std::string &deviceName) {
    json["check"] = checkJson(report, options);
    deliver(checkTable(report), json);
    std::cerr << checkFailures(report, options);
    if (!report.tooLarge.empty())
      fmt::print(stderr, "{} cases skipped, too large for {}\n", report.tooLarge.size(), deviceName);
    fmt::print(stderr, "{}: {} runs of a variant on a case on {}, {} pairs that do not fit skipped\n",
               report.passed() ? "PASS" : "FAIL", report.results.size(), deviceName, report.skipped);
    return report.passed() ? kOk : kFailedCheck;
  }

  std::string device = "auto", suite;
  std::vector<std::string> variants, cases;
  uint64_t seed = 1;
};

} // namespace

std::unique_ptr<Command> makeCheckCommand() { return std::make_unique<CheckCommand>(); }

} // namespace fagen::lab
