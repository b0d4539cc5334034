// fagen: fagen-run: lists, checks and times generated kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gpu_reference.h"
#include "listing.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <unistd.h>

using namespace fagen::lab;

namespace {

enum ExitCode { kOk = 0, kUserMistake = 1, kFailedCheck = 2, kInternal = 70 };

/// What every command takes.
struct Common {
  std::vector<std::string> directories;
  bool json = false;
  std::string output;
  std::vector<std::string> notes;
};

struct CheckArguments {
  std::string device = "auto", suite;
  std::vector<std::string> variants, cases;
  uint64_t seed = 1;
};

struct TimeArguments {
  std::vector<std::string> shapes, masks = {"none", "causal"}, dtypes = {"f16"}, variants;
  std::string state = "burst";
  bool grid = false, dispatched = false;
  int rounds = 3;
  uint64_t seed = 1;
};

struct ListArguments {
  std::vector<std::string> shapes;
  std::string mask = "none", dtype = "f16", sm;
};

/// One line on standard error: overwritten on a terminal, else one every ten seconds.
class ProgressLine {
public:
  void operator()(size_t done, size_t total, const std::string &what) {
    auto now = std::chrono::steady_clock::now();
    if (terminal) {
      fmt::print(stderr, "\r\033[K");
      if (done < total)
        fmt::print(stderr, "[{}/{}] {}", done + 1, total, what);
      std::fflush(stderr);
    } else if (done < total && now - last >= std::chrono::seconds(10)) {
      last = now;
      fmt::print(stderr, "[{}/{}] {}\n", done + 1, total, what);
    }
  }

private:
  bool terminal = isatty(STDERR_FILENO);
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

/// The head that every JSON result has.
Json envelope(const char *command, const Common &common, const Gpu *gpu) {
  Json json{{"tool", fmt::format("fagen-run {}", command)},
            {"version", FAGEN_VERSION},
            {"machine", describeMachine(gpu)},
            {"kernels", common.directories}};
  for (const std::string &note : common.notes) {
    size_t equals = note.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UserError(fmt::format("--note '{}' is not key=value", note));
    json["notes"][note.substr(0, equals)] = note.substr(equals + 1);
  }
  return json;
}

/// Prints the table or, with --json, the JSON; writes the JSON to --output.
void deliver(const Common &common, const std::string &table, const Json &json) {
  if (common.json)
    std::cout << json.dump(1) << '\n';
  else
    std::cout << table;
  if (common.output.empty())
    return;
  std::ofstream file(common.output);
  file << json.dump(1) << '\n';
  if (!file.flush())
    throw UserError(fmt::format("cannot write {}", common.output));
}

void requireVariants(const std::vector<std::unique_ptr<KernelSet>> &sets, const std::vector<std::string> &wanted) {
  std::vector<std::string> known;
  for (const auto &set : sets)
    for (const fagen_row *row : set->rows())
      known.emplace_back(row->variant);
  for (const std::string &name : wanted) {
    if (std::find(known.begin(), known.end(), name) != known.end())
      continue;
    std::string near = nearest(name, known);
    throw UserError(fmt::format("unknown variant '{}'; {}fagen-run list shows all {}", name,
                                near.empty() ? "" : fmt::format("did you mean '{}'? ", near), known.size()));
  }
}

/// "89", "sm_89" or "sm_90a".
uint32_t parseSm(std::string text) {
  if (text.starts_with("sm_"))
    text.erase(0, 3);
  if (text.ends_with('a'))
    text.pop_back();
  return static_cast<uint32_t>(parseInteger(text, "--sm"));
}

int runList(const Common &common, const ListArguments &arguments) {
  auto sets = loadKernelSets(common.directories);
  Json json = envelope("list", common, nullptr);
  if (arguments.shapes.empty()) {
    json["sets"] = listJson(sets);
    deliver(common, listTable(sets), json);
    return kOk;
  }
  uint32_t sm = arguments.sm.empty() ? sets.front()->rows().front()->sm : parseSm(arguments.sm);
  std::string text;
  bool found = true;
  json["explanations"] = Json::array();
  for (const std::string &shape : arguments.shapes) {
    Case problem;
    problem.shape = parseShape(shape);
    problem.mask = parseMask(arguments.mask);
    problem.dtype = parseDType(arguments.dtype);
    Explanation explanation = explain(sets, problem, sm);
    text += explanation.text + (explanation.text.ends_with('\n') ? "" : "\n");
    json["explanations"].push_back(explanationJson(explanation));
    found = found && explanation.status == FAGEN_OK;
  }
  deliver(common, text, json);
  return found ? kOk : kFailedCheck;
}

bool gpuPresent() {
  fagen_device *device = nullptr;
  bool present = fagen_device_create(0, &device) == FAGEN_OK;
  fagen_device_destroy(device);
  return present;
}

CheckOptions checkOptions(const CheckArguments &arguments) {
  CheckOptions options;
  options.deviceFlag = arguments.device == "auto" ? (gpuPresent() ? "gpu" : "cpu") : arguments.device;
  if (options.deviceFlag != "gpu" && options.deviceFlag != "cpu")
    throw UserError(fmt::format("unknown device '{}'; known: auto, gpu, cpu", options.deviceFlag));
  options.suite = !arguments.suite.empty() ? arguments.suite : options.deviceFlag == "gpu" ? "full" : "smoke";
  if (auto names = suiteNames(); std::find(names.begin(), names.end(), options.suite) == names.end())
    throw UserError(fmt::format("unknown suite '{}'; known: {}", options.suite, fmt::join(names, ", ")));
  for (const std::string &text : arguments.cases)
    options.cases.push_back(parseCase(text));
  options.variants = arguments.variants;
  options.seed = arguments.seed;
  return options;
}

int finishCheck(const Common &common, const CheckOptions &options, const CheckReport &report, Json json,
                const std::string &deviceName) {
  json["check"] = checkJson(report, options);
  deliver(common, checkTable(report), json);
  std::cerr << checkFailures(report, options);
  if (!report.tooLarge.empty())
    fmt::print(stderr, "{} cases skipped, too large for {}\n", report.tooLarge.size(), deviceName);
  fmt::print(stderr, "{}: {} runs of a variant on a case on {}, {} pairs that do not fit skipped\n",
             report.passed() ? "PASS" : "FAIL", report.results.size(), deviceName, report.skipped);
  return report.passed() ? kOk : kFailedCheck;
}

int runCheckCommand(const Common &common, const CheckArguments &arguments) {
  CheckOptions options = checkOptions(arguments);
  auto sets = loadKernelSets(common.directories);
  requireVariants(sets, options.variants);
  if (options.deviceFlag == "cpu") {
    auto device = makeEmulatorDevice();
    CpuReference engine;
    CheckReport report = runCheck(sets, *device, engine, options, ProgressLine());
    return finishCheck(common, options, report, envelope("check", common, nullptr), device->name());
  }
  GpuDevice device;
  GpuReference engine(device);
  GpuReference::Agreement agreement = engine.compareWithCpu();
  if (!agreement.holds())
    throw std::runtime_error(fmt::format("the GPU's reference differs from the CPU's by {:.1e} (O) and {:.1e} (LSE)",
                                         agreement.o, agreement.lse));
  CheckReport report = runCheck(sets, device, engine, options, ProgressLine());
  Json json = envelope("check", common, &device.gpu);
  json["reference"] = {{"o_gpu_cpu", agreement.o},
                       {"lse_gpu_cpu", agreement.lse},
                       {"plain_error_gpu", agreement.plainGpu},
                       {"plain_error_cpu", agreement.plainCpu}};
  return finishCheck(common, options, report, std::move(json), device.name());
}

TimeOptions timeOptions(const TimeArguments &arguments) {
  TimeOptions options;
  for (const std::string &shape : arguments.shapes)
    options.shapes.push_back(parseShape(shape));
  if (arguments.grid)
    for (const Shape &shape : gridShapes({64, 128}, {512, 2048, 8192}))
      options.shapes.push_back(shape);
  if (options.shapes.empty())
    for (const std::string &name : shapeNames())
      options.shapes.push_back(parseShape(name));
  options.masks.clear();
  for (const std::string &mask : arguments.masks)
    options.masks.push_back(parseMask(mask));
  options.dtypes.clear();
  for (const std::string &dtype : arguments.dtypes)
    options.dtypes.push_back(parseDType(dtype));
  if (arguments.state != "burst" && arguments.state != "steady")
    throw UserError(fmt::format("unknown state '{}'; known: burst, steady", arguments.state));
  options.state = arguments.state == "burst" ? PowerState::Burst : PowerState::Steady;
  options.variants = arguments.variants;
  options.dispatchedOnly = arguments.dispatched;
  options.rounds = arguments.rounds;
  options.seed = arguments.seed;
  return options;
}

int runTimeCommand(const Common &common, const TimeArguments &arguments) {
  TimeOptions options = timeOptions(arguments);
  auto sets = loadKernelSets(common.directories);
  requireVariants(sets, options.variants);
  GpuDevice device;
  TimeReport report = runTime(device, sets, options, ProgressLine());
  Json json = envelope("time", common, &device.gpu);
  json["time"] = timeJson(report, options);
  deliver(common, timeTable(report), json);
  bool failed = std::any_of(report.results.begin(), report.results.end(),
                            [](const TimeResult &result) { return !result.failure.empty(); });
  return failed ? kFailedCheck : kOk;
}

void addCommon(CLI::App *command, Common &common) {
  command->add_option("DIR", common.directories, "generated kernel directories, or a directory of such")->required();
  command->add_flag("--json", common.json, "print JSON instead of the table");
  command->add_option("--output", common.output, "also write the JSON to this file");
  command->add_option("--note", common.notes, "key=value to keep in the JSON: --note commit=1a2b3c");
}

void addList(CLI::App *command, ListArguments &arguments) {
  command->add_option("--shape", arguments.shapes,
                      "say which row a problem gets: b,h,hkv,sq,sk,d[,dv], mission, mission2");
  command->add_option("--mask", arguments.mask, "of the problem: none, causal")->capture_default_str();
  command->add_option("--dtype", arguments.dtype, "of the problem: f16, bf16")->capture_default_str();
  command->add_option("--sm", arguments.sm, "compute capability to dispatch for: 89 (default: the first row's)");
}

void addCheck(CLI::App *command, CheckArguments &arguments) {
  command->add_option("--device", arguments.device, "gpu, cpu (the emulator), auto")->capture_default_str();
  command->add_option("--suite", arguments.suite,
                      fmt::format("{} (default: full on a GPU, smoke on the CPU)", fmt::join(suiteNames(), ", ")));
  command->add_option("--variant", arguments.variants, "check only this variant; may be repeated");
  command->add_option("--case", arguments.cases,
                      "instead of a suite: \"b,h,hkv,sq,sk,d[,dv] [dtype=] [mask=] [inputs=] [layout=] [scale=] "
                      "[lse=off]\"; may be repeated");
  command->add_option("--seed", arguments.seed, "of the inputs")->capture_default_str();
}

void addTime(CLI::App *command, TimeArguments &arguments) {
  command->add_option("--shape", arguments.shapes, "b,h,hkv,sq,sk,d[,dv], mission, mission2 (default: both)");
  command->add_flag("--grid", arguments.grid, "d 64 and 128 at S 512, 2048, 8192 with B*S = 16384 and H*d = 2048");
  command->add_option("--mask", arguments.masks, "none, causal (default: both)")->delimiter(',');
  command->add_option("--dtype", arguments.dtypes, "f16, bf16 (default: f16)")->delimiter(',');
  command->add_option("--variant", arguments.variants, "time only this variant; may be repeated");
  command->add_flag("--dispatched", arguments.dispatched, "time only the row that dispatch picks");
  command->add_option("--state", arguments.state, "burst or steady")->capture_default_str();
  command->add_option("--rounds", arguments.rounds, "alternating segments of each variant")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  command->add_option("--seed", arguments.seed, "of the inputs")->capture_default_str();
}

int run(int argc, char **argv) {
  CLI::App app("fagen-run: lists, checks and times generated attention kernels", "fagen-run");
  app.set_version_flag("--version", "fagen-run " FAGEN_VERSION);
  app.require_subcommand(1);
  Common common;
  ListArguments listArguments;
  CheckArguments checkArguments;
  TimeArguments timeArguments;
  CLI::App *list = app.add_subcommand("list", "show the rows, or why a problem gets its row");
  CLI::App *check = app.add_subcommand("check", "compare every variant with the f64 reference; exit 2 on a failure");
  CLI::App *time = app.add_subcommand("time", "time variants on a GPU with CUDA graphs");
  for (CLI::App *command : {list, check, time})
    addCommon(command, common);
  addList(list, listArguments);
  addCheck(check, checkArguments);
  addTime(time, timeArguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? kOk : kUserMistake;
  }
  return *list    ? runList(common, listArguments)
         : *check ? runCheckCommand(common, checkArguments)
                  : runTimeCommand(common, timeArguments);
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const UserError &error) {
    fmt::print(stderr, "fagen-run: error: {}\n", error.what());
    return kUserMistake;
  } catch (const DeviceError &error) {
    fmt::print(stderr, "fagen-run: error: the device cannot go on: {}\n", error.what());
    return kFailedCheck;
  } catch (const std::exception &error) {
    fmt::print(stderr, "fagen-run: internal error: {}\n", error.what());
    return kInternal;
  }
}
