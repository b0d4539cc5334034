// fagen: fagen-run conformance: each ptx function on the GPU, in the emulator, and by its definition.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/conformance/conformance.h"
#include "Command.h"
#include "lab/conformance/recording.h"
#include "lab/device/gpu_device.h"
#include "lab/support/json_file.h"
#include "lab/support/write_file.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <iostream>

namespace fagen::lab {

namespace {

constexpr const char *kConformanceFooter = R"(
Every function of fagen/device/ptx runs in a small kernel on random inputs. Its results are compared with its
definition, bit by bit or against the bound that docs/internals/Arithmetic.md states, and the GPU's with the emulator's.

Examples:
  fagen-run conformance --device cpu --function mma
  fagen-run conformance --device both --rounds 64 --output conformance.json
  fagen-run conformance --device both --record h200.json    on a machine with a GPU
  fagen-run conformance --against h200.json                 the emulator with that GPU, on a machine without one)";

bool gpuPresent() {
  fagen_device *device = nullptr;
  const bool present = fagen_device_create(0, &device) == FAGEN_OK;
  fagen_device_destroy(device);
  return present;
}

class ConformanceCommand : public Command {
public:
  ConformanceCommand()
      : Command("conformance", "compare each ptx function on the GPU with the emulator and with its definition",
                false) {}

  void addOptions(CLI::App &app) override {
    app.footer(kConformanceFooter);
    app.add_option("--device", device, "gpu, cpu (the emulator), both, auto (what there is)")->capture_default_str();
    app.add_option("--seed", options.seed, "of the inputs")->capture_default_str();
    app.add_option("--rounds", options.rounds, "launches of each kernel, each with other inputs")
        ->capture_default_str()
        ->check(CLI::Range(1, 100000));
    app.add_option("--function", options.pattern, "only cases with this in their name");
    app.add_flag("!--no-study", options.study, "do not look for the way in which matrix instructions add");
    app.add_flag("--list", list, "show the cases and the functions that each exercises");
    record = app.add_option("--record", recordPath, "keep the GPU's results in this file");
    against = app.add_option("--against", againstPath, "compare the emulator with a file that --record wrote");
    against->excludes(record)->excludes("--seed")->excludes("--rounds")->excludes("--device");
  }

  int run() override {
    if (list)
      return showCases();
    if (*against)
      return compareWithRecording();
    const std::vector<std::string> known = {"auto", "gpu", "cpu", "both"};
    if (std::find(known.begin(), known.end(), device) == known.end())
      throw UserError(fmt::format("unknown device '{}'; known: {}", device, fmt::join(known, ", ")));
    const std::string chosen = device == "auto" ? (gpuPresent() ? "both" : "cpu") : device;
    if (chosen == "cpu" && *record)
      throw UserError("--record keeps a GPU's results; --device cpu has none");
    std::unique_ptr<GpuDevice> gpu;
    std::vector<std::unique_ptr<KernelRunner>> runners;
    if (chosen != "cpu") {
      gpu = std::make_unique<GpuDevice>();
      runners.push_back(makeGpuRunner(*gpu));
    }
    if (chosen != "gpu")
      runners.push_back(makeEmulatorRunner());
    const ConformanceReport report = measure(runners);
    Json json = envelope(gpu ? &gpu->gpu : nullptr);
    json["conformance"] = conformanceJson(report);
    const int code = finish(report, json, {});
    if (*record)
      writeFile(recordPath, printed(json) + '\n');
    return code;
  }

private:
  ConformanceReport measure(const std::vector<std::unique_ptr<KernelRunner>> &runners) const {
    std::vector<KernelRunner *> pointers;
    for (const auto &runner : runners)
      pointers.push_back(runner.get());
    return runConformance(pointers, options, ProgressLine());
  }

  int showCases() const {
    Json json = Json::array();
    std::string text;
    for (const ConformanceCase *c : conformanceCases(options.pattern)) {
      json.push_back({{"name", c->name}, {"functions", c->functions}, {"bound", c->exact() ? "exact" : c->bound}});
      text += fmt::format("{}: {}\n", c->name, fmt::join(c->functions, ", "));
    }
    deliver(text, json);
    return kOk;
  }

  int compareWithRecording() {
    const Recording recording = Recording::load(againstPath);
    options.seed = recording.seed();
    options.rounds = recording.rounds();
    options.study = false;
    std::vector<std::unique_ptr<KernelRunner>> runners;
    runners.push_back(makeEmulatorRunner());
    const ConformanceReport report = measure(runners);
    const std::vector<std::string> disagreements = recording.disagreements(report);
    Json json = envelope(nullptr);
    json["against"] = {{"file", againstPath}, {"device", recording.device()}, {"disagreements", disagreements}};
    json["conformance"] = conformanceJson(report);
    return finish(report, json, disagreements);
  }

  int finish(const ConformanceReport &report, const Json &result, const std::vector<std::string> &disagreements) const {
    deliver(conformanceTable(report), result);
    std::cerr << conformanceFailures(report);
    for (const std::string &line : disagreements)
      fmt::print(stderr, "{}\n", line);
    const bool passed = report.passed() && disagreements.empty();
    fmt::print(stderr, "{}: {} cases on {}, seed {}, {} rounds\n", passed ? "PASS" : "FAIL", report.cases.size(),
               fmt::join(report.devices, " and "), report.seed, report.rounds);
    return passed ? kOk : kFailedCheck;
  }

  ConformanceOptions options;
  std::string device = "auto", recordPath, againstPath;
  bool list = false;
  CLI::Option *record = nullptr, *against = nullptr;
};

} // namespace

std::unique_ptr<Command> makeConformanceCommand() { return std::make_unique<ConformanceCommand>(); }

} // namespace fagen::lab
