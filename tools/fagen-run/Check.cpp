// fagen: fagen-run check: compares every variant with the f64 reference.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Command.h"
#include "lab/check/check_report.h"
#include "lab/check/coverage.h"
#include "lab/device/gpu_reference.h"
#include "lab/kernel_set/forms.h"
#include "lab/kernel_set/sample.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iostream>
#include <map>
#include <sstream>

namespace fagen::lab {

namespace {

/// In how many launches asynchronous copies landed when.
class Landings {
public:
  /// Counts, then does as `hooks` says.
  EmulatorHooks countBefore(EmulatorHooks hooks) {
    return {[this, prepare = hooks.prepare](const Launch &launch, uint32_t index, emulator::Options &options) {
              ++launches[options.landing];
              if (prepare)
                prepare(launch, index, options);
            },
            hooks.observe};
  }
  Json json() const {
    const auto of = [this](emulator::Options::Landing landing) {
      const auto found = launches.find(landing);
      return found == launches.end() ? 0 : found->second;
    };
    return {{"latest", of(emulator::Options::Latest)},
            {"earliest", of(emulator::Options::Earliest)},
            {"random", of(emulator::Options::Random)}};
  }

private:
  std::map<emulator::Options::Landing, int64_t> launches;
};

class CheckCommand : public Command {
public:
  CheckCommand() : Command("check", "compare every variant with the f64 reference; exit 2 on a failure") {}

  void addOptions(CLI::App &app) override {
    app.add_option("--device", device, "gpu, cpu (the emulator), auto")->capture_default_str();
    app.add_option("--suite", suite,
                   fmt::format("{} (default: full on a GPU, smoke on the CPU)", fmt::join(suiteNames(), ", ")));
    app.add_option("--variant", variants, "check only this variant; may be repeated");
    app.add_flag("--sample", isSample,
                 "check one schedule of each kernel set, which --seed draws, and say what is left out")
        ->excludes("--variant");
    app.add_option("--case,--problem,--shape", cases,
                   "instead of a suite: \"b,h,hkv,sq,sk,d[,dv] [dtype=] [mask=] [inputs=] [layout=] [scale=] "
                   "[lse=off] [form=] [arg.NAME=] [scalars=device]\"; may be repeated");
    app.add_option("--part", part, "\"K/N\": every N-th case, from the K-th on, so that N processes share a suite");
    app.add_flag("--first-failure", endsAtFailure, "end with the first case that fails");
    app.add_option("--seed", seed, "of the inputs")->capture_default_str();
    app.add_option("--seeds", seeds,
                   "emulator: run each case 3 times as often, each run in another order of the threads, with copies "
                   "landing late, early and at random in turn")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000));
    app.add_option("--runs", runs,
                   "emulator: run each case so often; copies land late in the first run, early in the "
                   "second, at random in the third")
        ->capture_default_str()
        ->check(CLI::Range(1, 3));
    app.add_flag("--coverage", withCoverage, "emulator: also tell which ops of the kernels never ran");
    app.footer(
        "Examples:\n"
        "  fagen-run check generated                                   every variant; the GPU, if there is one\n"
        "  fagen-run check generated --device cpu --seeds 8 --json     the emulator, 24 orders of the threads\n"
        "  fagen-run check generated/l4_fp16 --case \"1,2,1,80,130,64 mask=causal\"\n"
        "  fagen-run check generated/l4_fp16 --device cpu --variant NAME --coverage\n"
        "Exit codes: 0 all pass, 1 your mistake, 2 a variant failed, 70 a fault of fagen-run or of the machine.");
  }

  int run() override {
    auto sets = loadKernelSets(directories);
    CheckOptions options = checkOptions(sets);
    requireVariants(sets, options.variants);
    if (isSample)
      options.variants = drawSample(sets);
    if (options.deviceFlag == "cpu") {
      OpCoverage coverage;
      Landings landings;
      auto device = makeEmulatorDevice(landings.countBefore(withCoverage ? coverage.hooks() : EmulatorHooks()));
      CpuReference engine;
      CheckReport report = runCheck(sets, *device, engine, options, ProgressLine());
      Json json = envelope(nullptr);
      json["landings"] = landings.json();
      if (withCoverage)
        json["coverage"] = coverage.json();
      return finishCheck(options, report, std::move(json), device->name(), withCoverage ? coverage.table() : "");
    }
    if (seeds != 1 || runs != kTolerances.runs || withCoverage)
      throw UserError("--runs, --seeds and --coverage are of the emulator; add --device cpu");
    GpuDevice device;
    GpuReference engine(device);
    GpuReference::Agreement agreement = engine.requireAgreement();
    CheckReport report = runCheck(sets, device, engine, options, ProgressLine());
    Json json = envelope(&device.gpu);
    json["reference"] = {{"o_gpu_cpu", agreement.o},
                         {"lse_gpu_cpu", agreement.lse},
                         {"lse_loss_gpu_cpu", agreement.lseLoss},
                         {"plain_error_gpu", agreement.plainGpu},
                         {"plain_error_cpu", agreement.plainCpu}};
    for (const auto &[form, agreed] : engine.agreementsOfForms())
      json["reference"]["forms"][form] = {{"o_gpu_cpu", agreed.o},
                                          {"lse_gpu_cpu", agreed.lse},
                                          {"lse_loss_gpu_cpu", agreed.lseLoss},
                                          {"form_errors_gpu_cpu", agreed.formErrors}};
    return finishCheck(options, report, std::move(json), device.name());
  }

private:
  CheckOptions checkOptions(const std::vector<std::unique_ptr<KernelSet>> &sets) const {
    CheckOptions options;
    options.deviceFlag = device == "auto" ? (hasGpu() ? "gpu" : "cpu") : device;
    if (options.deviceFlag != "gpu" && options.deviceFlag != "cpu")
      throw UserError(fmt::format("unknown device '{}'; known: auto, gpu, cpu", options.deviceFlag));
    options.suite = !suite.empty() ? suite : options.deviceFlag == "gpu" ? "full" : "smoke";
    requireSuite(options.suite);
    for (const std::string &text : cases)
      options.cases.push_back(caseFor(sets, text));
    options.variants = variants;
    std::tie(options.part, options.parts) = parsePart();
    options.seed = seed;
    options.runs = runs;
    options.seeds = seeds;
    options.endsAtFailure = endsAtFailure;
    return options;
  }

  /// The variants to check; says of each set what they are, and what is left out.
  std::vector<std::string> drawSample(const std::vector<std::unique_ptr<KernelSet>> &sets) {
    std::vector<std::string> drawn;
    for (const auto &set : sets) {
      const ScheduleSample &sample = samples.emplace_back(drawSchedule(*set, seed));
      drawn.insert(drawn.end(), sample.variants.begin(), sample.variants.end());
      fmt::print(stderr, "sample of {}\n", describe(sample));
    }
    return drawn;
  }

  /// Of "2/14": 2 and 14.
  std::pair<int64_t, int64_t> parsePart() const {
    std::istringstream text(part);
    int64_t which = 0, of = 0;
    char slash = 0;
    if (!(text >> which >> slash >> of) || slash != '/' || !text.eof() || which < 1 || which > of)
      throw UserError(fmt::format("--part is '{}'; it is a number, '/' and how many parts there are: 2/14", part));
    return {which, of};
  }

  int finishCheck(const CheckOptions &options, const CheckReport &report, Json json, const std::string &deviceName,
                  const std::string &coverage = {}) {
    requireRuns(report, options);
    json["check"] = checkJson(report, options);
    for (const ScheduleSample &sample : samples)
      json["check"]["samples"].push_back(
          {{"kernel", sample.kernel}, {"schedule", sample.schedule}, {"left_out", sample.leftOut}});
    deliver(checkTable(report) + (coverage.empty() ? "" : "\n" + coverage), json);
    std::cerr << checkFailures(report, options);
    if (!report.tooLarge.empty())
      fmt::print(stderr, "{} cases skipped, too large for {}\n", report.tooLarge.size(), deviceName);
    fmt::print(stderr, "{}: {} runs of a variant on a case on {}, {} pairs that do not fit skipped\n",
               report.passed() ? "PASS" : "FAIL", report.results.size(), deviceName, report.skipped);
    if (isSample)
      fmt::print(stderr, "only a sample was checked; without --sample all schedules are\n");
    return report.passed() ? kOk : kFailedCheck;
  }

  std::string device = "auto", suite, part = "1/1";
  std::vector<std::string> variants, cases;
  uint64_t seed = 1;
  int runs = kTolerances.runs, seeds = 1;
  bool withCoverage = false, isSample = false, endsAtFailure = false;
  std::vector<ScheduleSample> samples; ///< one for each set, where only samples are checked
};

} // namespace

std::unique_ptr<Command> makeCheckCommand() { return std::make_unique<CheckCommand>(); }

} // namespace fagen::lab
