// fagen: fagen-run program: any program of the IR, next to a reference in words.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Command.h"
#include "lab/device/gpu_device.h"
#include "lab/program/from_ir.h"
#include "lab/program/from_table.h"
#include "lab/program/run.h"
#include "lab/support/statistics.h"
#include "lab/support/text_table.h"

#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fagen::lab {

namespace {

constexpr const char *kProgramFooter = R"(
Lowers the program (fagen-opt --lower), compiles it, allocates the buffers that it names, fills those that are only read
with normal random values, launches it, and compares the results with sums of products. Of a large result a sample is
compared.

Examples:
  fagen-run program gemm.fair --size M=300,N=200,K=128 --reference "c[m, n] = a[m, k] * b[n, k]" --device cpu
  fagen-run program gemm.fair --size M=4096,N=4096,K=4096 --reference "..." --time --cublas M,N,K
  fagen-run program scaled.fair --size M=300,N=200 --set factor=0.5 --reference "..."
  fagen-run program ragged.fair --size B=3,T=400,N=64 --fill "begin[b] = 100 * b" --reference "..."
  fagen-run program generated/mine --name gemm --size M=300,N=200,K=128 --reference "..."
  fagen-run check generated/mine --program gemm --size M=300,N=200,K=128 --reference "..."
  fagen-run time generated/mine --program gemm --size M=300,N=200,K=128
  fagen-run program plan.json --size M=300 --reference "d[m] = a[m]")";

class ProgramCommand : public Command {
public:
  ProgramCommand() : Command("program", "run any program of the IR and compare it with a reference in words", false) {}

  void addOptions(CLI::App &app) override {
    app.footer(kProgramFooter);
    app.add_option("PROGRAM", path,
                   "textual IR (.fair), a plan (JSON), which names its CUDA text, or a kernel set's directory, whose "
                   "table then says how it is launched")
        ->required();
    app.add_option("--name,--program,--variant", name, "which program of the kernel set (default: the only one)");
    app.add_option("--size,--shape,--problem,--case", given, "NAME=NUMBER, of each size that the program has")
        ->delimiter(',');
    app.add_option("--set", numbers, "NAME=NUMBER, of each real number that the program takes")->delimiter(',');
    app.add_option("--reference", options.reference,
                   "what it computes: \"c[m, n] = a[m, k] * b[n, k]; ...\"; --time alone needs none");
    app.add_option("--fill", options.fills, "what a buffer that is only read holds: \"begin[b] = 70 * b\"");
    app.add_flag("--time", options.isTimed, "also how long all launches take, on a GPU");
    app.add_option("--rounds", options.timing.rounds, "turns of each that is timed")
        ->capture_default_str()
        ->check(CLI::Range(1, 100));
    app.add_option("--cublas", product,
                   "time a product by cuBLAS in turn with them: the sizes of C[m, n] = A[m, k] B[n, k]")
        ->delimiter(',')
        ->expected(3)
        ->needs("--time");
    app.add_flag("--clocks", hasClocks, "also what each role's warps spent their time on; of a .fair file");
    app.add_option("--device", device, "gpu, cpu (the emulator), auto (what there is)")->capture_default_str();
    app.add_option("--seed", options.seed, "of the inputs")->capture_default_str();
    app.add_option("--runs", options.attempts, "each with other inputs; on the emulator with another order of events")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000));
    app.add_option("--sample", options.sample, "elements of each result that are compared")
        ->capture_default_str()
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  }

  int run() override {
    const bool isSet = std::filesystem::is_directory(path);
    const bool isIr = path.size() > 5 && path.compare(path.size() - 5, 5, ".fair") == 0;
    if (!isSet && !name.empty())
      throw UserError(fmt::format("--name is of a kernel set's directory; {} is one program", path));
    if (hasClocks && isSet)
      throw UserError(
          fmt::format("--clocks is of a .fair file, or of a plan that fagen-opt --clocks made; the texts of {} "
                      "tell no clocks",
                      path));
    if (hasClocks && options.isTimed)
      throw UserError("--clocks goes without --time: clocks take time themselves");
    if (options.reference.empty() && !options.isTimed && !hasClocks)
      throw UserError(
          "--reference is required: what the program computes, as \"c[m, n] = a[m, k] * b[n, k]\"; fagen-run "
          "program --help has examples");
    const TableProgram row = isSet ? TableProgram::load(path, name) : TableProgram();
    const auto lowered = isIr ? std::make_unique<ProgramFromIr>(path, hasClocks) : nullptr;
    ProgramPlan plan = isSet ? row.plan : ProgramPlan::load(lowered ? lowered->plan() : path);
    if (hasClocks && std::none_of(plan.buffers.begin(), plan.buffers.end(),
                                  [](const ProgramBuffer &buffer) { return !buffer.clocksOf.empty(); }))
      throw UserError(
          fmt::format("the text of {} tells no clocks; fagen-opt --clocks --emit=cuda writes one that does", path));
    options.sizes = sizesFor(plan);
    plan.setNumbers(givenNumbers());
    if (!product.empty())
      options.timing = productFor(plan);
    const std::unique_ptr<ProgramRunner> runner = makeRunner();
    const ProgramReport report = runProgram(plan, *runner, options);
    Json json = envelope(runner->gpu());
    json["program"] = {{"name", plan.name},
                       {"device", runner->name()},
                       {"reference", options.reference},
                       {"seed", options.seed},
                       {"runs", options.attempts}};
    for (const auto &[name, value] : options.sizes)
      json["program"]["sizes"][name] = value;
    json["program"]["results"] = resultsJson(report);
    if (options.isTimed)
      json["program"]["times"] = timesJson(report);
    if (hasClocks)
      json["program"]["clocks"] = clocksJson(report);
    for (const Failure &failure : report.failures)
      json["program"]["failures"].push_back({{"criterion", failure.criterion}, {"message", failure.message}});
    deliver((report.results.empty() ? "" : table(plan, *runner, report)) +
                (report.times.empty() ? "" : timesTable(report)) + (report.clocks.empty() ? "" : clocksTable(report)),
            json);
    for (const Failure &failure : report.failures)
      fmt::print(stderr, "{}: {}\n", failure.criterion, failure.message);
    if (!options.reference.empty() || !report.failures.empty())
      fmt::print(stderr, "{}: {} on {}\n", report.failures.empty() ? "PASS" : "FAIL", plan.name, runner->name());
    return report.failures.empty() ? kOk : kFailedCheck;
  }

private:
  /// Every size of the plan once, and no other.
  Sizes sizesFor(const ProgramPlan &plan) const {
    Sizes sizes;
    const std::vector<std::string> known = plan.sizeNames();
    for (const std::string &text : given) {
      const size_t equals = text.find('=');
      int64_t value = 0;
      const char *const end = text.data() + text.size();
      if (equals == std::string::npos ||
          std::from_chars(text.data() + equals + 1, end, value) != std::from_chars_result{end, std::errc()} ||
          value < 0)
        throw UserError(fmt::format("--size '{}' is not NAME=NUMBER", text));
      const std::string name = text.substr(0, equals);
      if (std::find(known.begin(), known.end(), name) == known.end())
        throw UserError(fmt::format("{} has no size '{}'; it has {}", plan.name, name, fmt::join(known, ", ")));
      if (!sizes.emplace(name, value).second)
        throw UserError(fmt::format("size '{}' is given twice", name));
    }
    for (const std::string &name : known)
      if (!sizes.count(name))
        throw UserError(fmt::format("size '{}' has no value; give it as --size {}=...", name, name));
    return sizes;
  }

  std::map<std::string, double> givenNumbers() const {
    std::map<std::string, double> found;
    for (const std::string &text : numbers) {
      const size_t equals = text.find('=');
      double value = 0;
      const char *const end = text.data() + text.size();
      if (equals == std::string::npos ||
          std::from_chars(text.data() + equals + 1, end, value) != std::from_chars_result{end, std::errc()})
        throw UserError(fmt::format("--set '{}' is not NAME=NUMBER", text));
      if (!found.emplace(text.substr(0, equals), value).second)
        throw UserError(fmt::format("number '{}' is given twice", text.substr(0, equals)));
    }
    return found;
  }

  ProgramTiming productFor(const ProgramPlan &plan) const {
    int64_t values[3] = {};
    for (size_t i = 0; i < 3; ++i) {
      const auto size = options.sizes.find(product[i]);
      if (size == options.sizes.end())
        throw UserError(fmt::format("--cublas: {} has no size '{}'; it has {}", plan.name, product[i],
                                    fmt::join(plan.sizeNames(), ", ")));
      values[i] = size->second;
    }
    ProgramTiming timing = options.timing;
    timing.productRows = values[0], timing.productColumns = values[1], timing.productLength = values[2];
    return timing;
  }

  std::unique_ptr<ProgramRunner> makeRunner() const {
    if (device != "auto" && device != "gpu" && device != "cpu")
      throw UserError(fmt::format("unknown device '{}'; known: auto, gpu, cpu", device));
    const bool onGpu = device == "gpu" || (device == "auto" && hasGpu());
    return onGpu ? makeGpuProgram() : makeEmulatedProgram();
  }

  static Json resultsJson(const ProgramReport &report) {
    Json results = Json::array();
    for (const ComparedResult &result : report.results)
      results.push_back({{"buffer", result.buffer},
                         {"compared", result.compared},
                         {"wrong", result.wrong},
                         {"worst_of_allowed", result.worst}});
    return results;
  }

  static Json timesJson(const ProgramReport &report) {
    Json times = Json::array();
    for (const ProgramTime &time : report.times)
      times.push_back({{"name", time.name},
                       {"library", time.library},
                       {"launches", time.launches},
                       {"microseconds", time.microseconds}});
    return times;
  }

  static std::string timesTable(const ProgramReport &report) {
    TextTable table({{"timed"}, {"library"}, {"median us", true}, {"first of these / this", true}});
    for (const ProgramTime &time : report.times)
      table.add({time.name, time.library, fmt::format("{:.2f}", median(time.microseconds)),
                 fmt::format("{:.3f}", median(report.times.front().microseconds) / median(time.microseconds))});
    return "\n" + table.text();
  }

  static Json clocksJson(const ProgramReport &report) {
    Json roles = Json::array();
    for (const RoleClocks &clocks : report.clocks) {
      const Breakdown &of = clocks.breakdown;
      Json stages = Json::array();
      for (const StageSummary &stage : of.stages())
        stages.push_back({{"name", stage.name}, {"clocks", stage.clocks.median}, {"share", stage.share.median}});
      roles.push_back({{"launch", clocks.launch},
                       {"role", clocks.role},
                       {"warps", of.warps.size()},
                       {"span", of.span().median},
                       {"tiles", of.tiles().median},
                       {"sum_over_span", of.sumOverSpan().median},
                       {"stages", std::move(stages)}});
    }
    return roles;
  }

  /// Medians over the warps of a role.
  static std::string clocksTable(const ProgramReport &report) {
    TextTable table(
        {{"launch"}, {"role"}, {"warps", true}, {"stage"}, {"clocks", true}, {"share", true}, {"a tile", true}});
    for (const RoleClocks &clocks : report.clocks)
      for (const StageSummary &stage : clocks.breakdown.stages())
        table.add({clocks.launch, clocks.role, fmt::format("{}", clocks.breakdown.warps.size()), stage.name,
                   fmt::format("{:.0f}", stage.clocks.median), fmt::format("{:.1f} %", 100 * stage.share.median),
                   fmt::format("{:.0f}", stage.perTile)});
    return "\n" + table.text();
  }

  static std::string table(const ProgramPlan &plan, const ProgramRunner &runner, const ProgramReport &report) {
    TextTable table(
        {{"program"}, {"device"}, {"result"}, {"compared", true}, {"wrong", true}, {"error / allowed", true}});
    for (const ComparedResult &result : report.results)
      table.add({plan.name, runner.name(), result.buffer, fmt::format("{}", result.compared),
                 fmt::format("{}", result.wrong), fmt::format("{:.3f}", result.worst)});
    return table.text();
  }

  std::string path, name, device = "auto";
  bool hasClocks = false;
  std::vector<std::string> given, numbers, product;
  ProgramOptions options;
};

} // namespace

std::unique_ptr<Command> makeProgramCommand() { return std::make_unique<ProgramCommand>(); }

} // namespace fagen::lab
