// fagen: fagen-run time: times variants on a GPU with CUDA graphs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Command.h"
#include "gpu_reference.h"

#include <algorithm>
#include <fmt/format.h>

namespace fagen::lab {

namespace {

class TimeCommand : public Command {
public:
  TimeCommand() : Command("time", "time variants on a GPU with CUDA graphs") {}

  void addOptions(CLI::App &app) override {
    app.add_option("--shape", shapes, "b,h,hkv,sq,sk,d[,dv], mission, mission2 (default: both)");
    app.add_flag("--grid", grid, "d 64 and 128 at S 512, 2048, 8192 with B*S = 16384 and H*d = 2048");
    app.add_option("--mask", masks, "none, causal (default: both)")->delimiter(',');
    app.add_option("--dtype", dtypes, "f16, bf16 (default: f16)")->delimiter(',');
    app.add_option("--variant", variants, "time only this variant; may be repeated");
    app.add_flag("--dispatched", dispatched, "time only the row that dispatch picks");
    app.add_option("--state", state, "burst or steady")->capture_default_str();
    app.add_option("--rounds", rounds, "alternating segments of each variant")
        ->capture_default_str()
        ->check(CLI::Range(1, 100));
    app.add_option("--seed", seed, "of the inputs")->capture_default_str();
  }

  int run() override {
    TimeOptions options = timeOptions();
    auto sets = loadKernelSets(directories);
    requireVariants(sets, options.variants);
    GpuDevice device;
    TimeReport report = runTime(device, sets, options, ProgressLine());
    Json json = envelope(&device.gpu);
    json["time"] = timeJson(report, options);
    deliver(timeTable(report), json);
    bool failed = std::any_of(report.results.begin(), report.results.end(),
                              [](const TimeResult &result) { return !result.failure.empty(); });
    return failed ? kFailedCheck : kOk;
  }

private:
  TimeOptions timeOptions() const {
    TimeOptions options;
    for (const std::string &shape : shapes)
      options.shapes.push_back(parseShape(shape));
    if (grid)
      for (const Shape &shape : gridShapes({64, 128}, {512, 2048, 8192}))
        options.shapes.push_back(shape);
    if (options.shapes.empty())
      for (const std::string &name : shapeNames())
        options.shapes.push_back(parseShape(name));
    options.masks.clear();
    for (const std::string &mask : masks)
      options.masks.push_back(parseMask(mask));
    options.dtypes.clear();
    for (const std::string &dtype : dtypes)
      options.dtypes.push_back(parseDType(dtype));
    if (state != "burst" && state != "steady")
      throw UserError(fmt::format("unknown state '{}'; known: burst, steady", state));
    options.state = state == "burst" ? PowerState::Burst : PowerState::Steady;
    options.variants = variants;
    options.dispatchedOnly = dispatched;
    options.rounds = rounds;
    options.seed = seed;
    return options;
  }

  std::vector<std::string> shapes, masks = {"none", "causal"}, dtypes = {"f16"}, variants;
  std::string state = "burst";
  bool grid = false, dispatched = false;
  int rounds = 3;
  uint64_t seed = 1;
};

} // namespace

std::unique_ptr<Command> makeTimeCommand() { return std::make_unique<TimeCommand>(); }

} // namespace fagen::lab
