// fagen: fagen-run time: times variants and baselines with CUDA graphs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Command.h"
#include "TimingOptions.h"
#include "lab/kernel_set/forms.h"
#include "lab/time/time_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <iostream>

namespace fagen::lab {

namespace {

class TimeCommand : public Command {
public:
  TimeCommand() : Command("time", "time variants on a GPU with CUDA graphs, and baselines in turn") {}

  std::string withoutGpu() const override {
    return "times need one: run this on a machine with a GPU, or give --device simulated:FILE.json of recorded times";
  }

  void addOptions(CLI::App &app) override {
    timing.declare(app, "gpu, or simulated:FILE.json (recorded times)");
    app.add_option("--mask,--form", masks, "none, causal, forms by name (default: all that the kernels have)")
        ->delimiter(',');
    app.add_option("--dtype", dtypes, "f16, bf16 (default: f16)")->delimiter(',');
    app.add_option("--variant", variants, "time only this variant; may be repeated");
    app.add_flag("--dispatched", dispatched, "time only the row that dispatch picks");
    app.add_option("--baseline", baselines,
                   "sdpa, sdpa:flash, sdpa:cudnn, sdpa:efficient, sdpa:math, cublas-unfused, cublas-gemm, "
                   "kernel:VARIANT; may be repeated");
    app.footer("Examples:\n"
               "  fagen-run time generated/h200 --shape 4,16,16,4096,4096,128 --mask causal --dispatched --baseline "
               "sdpa:cudnn\n"
               "  fagen-run time generated/l4_fp16 --grid --l2 cold --json --output times.json\n"
               "  fagen-run time generated/l4_fp16 --shape mission --device simulated:times.json    recorded times, "
               "without a GPU\n"
               "Exit codes: 0 done, 1 your mistake, 70 a fault of fagen-run or of the machine.");
  }

  int run() override {
    auto sets = loadKernelSets(directories);
    TimeOptions options = timeOptions(sets);
    requireVariants(sets, options.variants);
    requireBaselines(sets, options.baselines);
    std::unique_ptr<TimingDevice> device = makeTimingDevice(timing.device);
    TimeReport report = runTime(*device, sets, options, ProgressLine());
    Json json = envelope(device->gpu());
    json["device"] = device->name();
    json["time"] = timeJson(report, options);
    deliver(timeTable(report, options), json);
    for (const std::string &note : report.notes)
      std::cerr << note << '\n';
    for (const std::string &warning : timeWarnings(report, options))
      std::cerr << "warning: " << warning << '\n';
    // A baseline that is not on this machine is no failure of ours.
    bool failed = std::any_of(report.results.begin(), report.results.end(),
                              [](const TimeResult &result) { return result.row && !result.failure.empty(); });
    return failed ? kFailedCheck : kOk;
  }

private:
  TimeOptions timeOptions(const std::vector<std::unique_ptr<KernelSet>> &sets) const {
    TimeOptions options = timing.options();
    chooseMasks(sets, options);
    options.dtypes.clear();
    for (const std::string &dtype : dtypes)
      options.dtypes.push_back(parseDType(dtype));
    options.variants = variants;
    options.baselines = baselines;
    options.dispatchedOnly = dispatched;
    return options;
  }

  void chooseMasks(const std::vector<std::unique_ptr<KernelSet>> &sets, TimeOptions &options) const {
    if (masks.empty())
      for (const auto &set : sets)
        options.forms.insert(options.forms.end(), set->forms().begin(), set->forms().end());
    else
      options.masks.clear();
    for (const std::string &text : masks) {
      const MaskChoice choice = chooseMask(sets, text);
      if (choice.form)
        options.forms.push_back(choice.form);
      else
        options.masks.push_back(choice.mask);
    }
  }

  TimingFlags timing;
  std::vector<std::string> masks, dtypes = {"f16"}, variants, baselines;
  bool dispatched = false;
};

} // namespace

std::unique_ptr<Command> makeTimeCommand() { return std::make_unique<TimeCommand>(); }

} // namespace fagen::lab
