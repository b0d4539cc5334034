// fagen: fagen-run soak: the same launch a thousand times, and many random ones.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/check/soak.h"
#include "Command.h"
#include "lab/device/gpu_reference.h"
#include "lab/kernel_set/forms.h"

#include <cstdlib>
#include <fmt/format.h>
#include <iostream>

namespace fagen::lab {

namespace {

class SoakCommand : public Command {
public:
  SoakCommand()
      : Command("soak", "repeat launches bit for bit under load, and launch random problems; exit 2 on a failure") {}

  void addOptions(CLI::App &app) override {
    app.add_option("--device", device, "gpu, cpu (the emulator), auto")->capture_default_str();
    app.add_option("--variant", options.variants, "only this variant; may be repeated");
    app.add_option(
        "--case,--problem,--shape", cases,
        "repeat this one on the variants that it is of, not the usual one: as check takes it; may be repeated");
    app.add_option("--repeats", repeats,
                   "runs of each variant that must give the same bits (default: 1000; emulator: 5)")
        ->check(CLI::Range(0, 1000000));
    app.add_option("--launches", launches, "of random problems, none of which may hang (default: 100000; emulator: 50)")
        ->check(CLI::Range(0, 1000000000));
    app.add_option("--patience", options.patience, "seconds without an end that are a hang")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    app.add_flag("--no-load{false}", options.load, "do not keep the GPU busy with other work meanwhile");
    app.add_option("--seed", options.seed, "of inputs and random problems")->capture_default_str();
    app.footer(
        "Examples:\n"
        "  fagen-run soak generated/l4_fp16                        1000 runs of each variant, 100000 random launches\n"
        "  fagen-run soak generated --device cpu --launches 20     the emulator, in another order of the threads each "
        "run\n"
        "Exit codes: 0 all hold, 1 your mistake, 2 other bits, a hang or a wrong result, 70 a fault of fagen-run or of "
        "the machine.");
  }

  int run() override {
    options.deviceFlag = device == "auto" ? (hasGpu() ? "gpu" : "cpu") : device;
    if (options.deviceFlag != "gpu" && options.deviceFlag != "cpu")
      throw UserError(fmt::format("unknown device '{}'; known: auto, gpu, cpu", options.deviceFlag));
    auto sets = loadKernelSets(directories);
    for (const std::string &text : cases)
      options.cases.push_back(caseFor(sets, text));
    requireVariants(sets, options.variants);
    if (options.deviceFlag == "cpu") {
      shrink();
      auto emulator = makeEmulatorDevice();
      CpuReference engine;
      return finish(runSoak(sets, *emulator, engine, options, ProgressLine()), envelope(nullptr));
    }
    options.repeats = repeats.value_or(options.repeats);
    options.launches = launches.value_or(options.launches);
    GpuDevice gpu;
    GpuReference engine(gpu);
    const Json head = envelope(&gpu.gpu);
    // Releasing memory would wait for the launch that never ends.
    options.onDeviceLost = [&](const SoakReport &report) { std::_Exit(finish(report, head)); };
    return finish(runSoak(sets, gpu, engine, options, ProgressLine()), head);
  }

private:
  /// To what an emulator does in seconds; the order of threads takes the place of a load.
  void shrink() {
    options.repeats = repeats.value_or(5);
    options.launches = launches.value_or(50);
    options.limits = {2, 3, 70};
    options.repeated = {1, 2, 1, 80, 130, 0, 0};
  }

  int finish(const SoakReport &report, Json json) {
    json["soak"] = soakJson(report, options);
    deliver(soakTable(report), json);
    std::cerr << soakFailures(report);
    fmt::print(stderr, "{}: {} runs, {} with other bits; {} random launches{}\n", report.passed() ? "PASS" : "FAIL",
               json["soak"]["runs"].get<int64_t>(), json["soak"]["runs_with_other_bits"].get<int64_t>(),
               json["soak"]["random_launches"].get<int64_t>(), report.loaded ? ", under load" : "");
    std::cout.flush();
    return report.passed() ? kOk : kFailedCheck;
  }

  SoakOptions options;
  std::string device = "auto";
  std::vector<std::string> cases;
  std::optional<int64_t> repeats, launches;
};

} // namespace

std::unique_ptr<Command> makeSoakCommand() { return std::make_unique<SoakCommand>(); }

} // namespace fagen::lab
