// fagen: fagen-run profile: hardware counters of a launch, what bounds it, and how far it is from the roofline's floor.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/profile/profile.h"
#include "Command.h"
#include "TimingOptions.h"
#include "lab/check/check.h"
#include "lab/device/cuda.h"
#include "lab/profile/cupti_session.h"
#include "lab/profile/profile_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <iostream>

namespace fagen::lab {

namespace {

constexpr const char *kProfileFooter = R"(
Without --variant the row that dispatch picks is profiled, for each shape, mask and dtype. Counters come from CUPTI;
where it refuses or crashes, from ncu. docs/Profiling.md has the rules of the verdict and what the floor is.

Examples:
  fagen-run profile generated/l4_fp16 --shape mission --mask none
  fagen-run profile generated/l4_fp16 --variant l4_fp16_short_f16_d64_none --shape 8,32,32,2048,2048,64
  fagen-run profile generated/l4_fp16 --shape mission --compare-ncu --output profile.json
  fagen-run profile generated/l4_fp16 --shape mission --device simulated:profile.json
  fagen-run profile --list-metrics GH100

Exit codes: 0 done, 1 your mistake, 2 a kernel could not be counted, or CUPTI and ncu differ by more than 5 %.)";

class ProfileCommand : public Command {
public:
  ProfileCommand()
      : Command("profile", "hardware counters of a launch, what bounds it, distance from the roofline's floor", false) {
  }

  std::string withoutGpu() const override {
    return "counters need one: run this on a machine with a GPU, or give --device simulated:FILE.json of recorded "
           "counters";
  }

  void addOptions(CLI::App &app) override {
    app.add_option("DIR", directories, "generated kernel directories, or a directory of such");
    app.add_option("--device", device, "gpu, or simulated:FILE.json (recorded counters)")->capture_default_str();
    app.add_option("--variant", variants, "this variant; may be repeated (default: the row that dispatch picks)");
    app.add_option("--shape,--problem,--case", shapes, "b,h,hkv,sq,sk,d[,dv], mission, mission2 (default: mission)");
    app.add_option("--mask", masks, "none, causal (default: both; of a variant, its own)")->delimiter(',');
    app.add_option("--dtype", dtypes, "f16, bf16 (default: f16; of a variant, its own)")->delimiter(',');
    app.add_option("--counters", counters,
                   "auto (cupti, else ncu), cupti, ncu, or none: only launch, for a profiler around this command")
        ->capture_default_str();
    app.add_flag("--compare-ncu", compare, "count with CUPTI and with ncu; exit 2 if they differ by more than 5 %");
    app.add_option("--metric", extra, "count this one too; may be repeated");
    app.add_option("--list-metrics", listedChip, "only list the metrics of a chip (GH100), or of the first GPU (gpu)");
    app.add_option("--cupti-log", logFile, "write each call of CUPTI and its status to this file");
    app.add_flag("--in-process", inProcess, "CUPTI counts in this process, which ends where CUPTI crashes");
    app.add_option("--seed", seed, "of the inputs")->capture_default_str();
    app.footer(kProfileFooter);
  }

  int run() override {
    if (!listedChip.empty())
      return listMetrics();
    if (directories.empty())
      throw UserError("DIR is required: a generated kernel directory, or a directory of such");
    std::vector<CounterKind> sources = parseSources();
    auto sets = loadKernelSets(directories);
    requireVariants(sets, variants);
    std::unique_ptr<CounterDevice> counterDevice = makeCounterDevice();
    std::vector<ProfiledRow> rows = chooseRows(sets, *counterDevice);
    if (counters == "none")
      return launchOnly(*counterDevice, rows);
    std::vector<Profile> profiles;
    ProgressLine progress;
    for (const ProfiledRow &row : rows) {
      progress(profiles.size(), rows.size(), row.row->variant);
      profiles.push_back(runProfile(*counterDevice, row, sources, extra));
      if (compare)
        addReading(*counterDevice, profiles.back(), CounterKind::Ncu, extra);
    }
    progress(rows.size(), rows.size(), "");
    report(*counterDevice, profiles);
    return judge(profiles);
  }

private:
  std::vector<CounterKind> parseSources() const {
    if (counters != "auto" && counters != "cupti" && counters != "ncu" && counters != "none")
      throw UserError(fmt::format("unknown source of counters '{}'; known: auto, cupti, ncu, none", counters));
    if (compare && counters != "auto" && counters != "cupti")
      throw UserError(
          fmt::format("--compare-ncu compares CUPTI with ncu; it does not go with --counters {}", counters));
    if (counters == "ncu")
      return {CounterKind::Ncu};
    return counters == "cupti" || compare ? std::vector{CounterKind::Cupti}
                                          : std::vector{CounterKind::Cupti, CounterKind::Ncu};
  }

  std::unique_ptr<CounterDevice> makeCounterDevice() const {
    constexpr std::string_view kSimulated = "simulated:";
    if (isSimulated(device))
      return makeRecordedCounters(device.substr(kSimulated.size()), logFile);
    if (device != "gpu")
      throw UserError(fmt::format("unknown device '{}'; counters come from gpu or simulated:FILE.json", device));
    return makeGpuCounters(logFile, inProcess ? CuptiPlace::Here : CuptiPlace::Process);
  }

  std::vector<ProfiledRow> chooseRows(const std::vector<std::unique_ptr<KernelSet>> &sets,
                                      CounterDevice &counterDevice) const {
    std::vector<ProfiledRow> rows;
    std::vector<std::string> wanted = shapes.empty() ? std::vector<std::string>{"mission"} : shapes;
    for (const std::string &shape : wanted)
      for (const std::string &mask : either(masks, {"none", "causal"}))
        for (const std::string &dtype : either(dtypes, {"f16", "bf16"})) {
          // Of the element types only f16 is meant where nothing is said at all.
          if (variants.empty() && dtypes.empty() && dtype != "f16")
            continue;
          Case c;
          c.shape = parseShape(shape);
          c.mask = parseMask(mask);
          c.dtype = parseDType(dtype);
          for (const auto &set : sets)
            addRows(rows, *set, c, counterDevice);
        }
    if (rows.empty())
      throw UserError(
          fmt::format("no variant takes the problem on {}; fagen-run list shows head_dim and target of each",
                      counterDevice.name()));
    return rows;
  }

  static std::vector<std::string> either(const std::vector<std::string> &given, std::vector<std::string> otherwise) {
    return given.empty() ? std::move(otherwise) : given;
  }

  void addRows(std::vector<ProfiledRow> &rows, const KernelSet &set, const Case &c, CounterDevice &on) const {
    const fagen_table *table = set.table();
    fagen_problem problem = describeProblem(c, Placements(c));
    ProfiledRow candidate;
    candidate.set = &set;
    candidate.problem = c;
    candidate.seed = seed;
    auto query = [&] { return fagen_query(&table, 1, &problem, on.queryDevice(), &candidate.choice) == FAGEN_OK; };
    auto add = [&] {
      candidate.row = candidate.choice.row;
      rows.push_back(candidate);
    };
    if (variants.empty() && query())
      add();
    for (const fagen_row *row : set.rows()) {
      problem.variant = row->variant;
      if (std::find(variants.begin(), variants.end(), row->variant) != variants.end() && query() &&
          candidate.choice.row == row)
        add();
    }
  }

  static int launchOnly(CounterDevice &on, const std::vector<ProfiledRow> &rows) {
    for (const ProfiledRow &row : rows)
      on.launch(row, kProfileWarmups + 1);
    fmt::print("launched {} variants {} times each\n", rows.size(), kProfileWarmups + 1);
    return kOk;
  }

  void report(CounterDevice &on, const std::vector<Profile> &profiles) const {
    std::string text;
    Json json = envelope(on.gpu());
    json["kernels"] = directories;
    json["device"] = {{"name", on.name()}, {"compute_capability", on.computeCapability()}, {"sms", on.sms()}};
    json["profile"] = Json::array();
    for (const Profile &profile : profiles) {
      text += profileText(profile);
      if (compare && profile.readings.size() == 2)
        text += comparisonText(profile);
      json["profile"].push_back(profileJson(profile, compare));
    }
    deliver(text, json);
  }

  /// Says on standard error what could not be counted; gives the exit code.
  int judge(const std::vector<Profile> &profiles) const {
    bool failed = false;
    for (const Profile &profile : profiles) {
      const std::string what =
          fmt::format("{} on {}", profile.subject.row->variant, formatCase(profile.subject.problem));
      bool missing = profile.readings.size() < (compare ? 2u : 1u);
      for (const auto &[kind, reason] : profile.refused)
        fmt::print(stderr, "{}{}: {} refused: {}\n", missing ? "" : "note: ", what, nameOf(kind), reason);
      if (profile.readings.empty())
        fmt::print(stderr, "{}: no counters: every source refused\n", what);
      failed |= missing || (compare && !readingsAgree(profile));
    }
    return failed ? kFailedCheck : kOk;
  }

  int listMetrics() const {
    std::string reason;
    const cupti::Library *library = cupti::library(reason);
    if (!library)
      throw UserError(fmt::format("metrics are listed by CUPTI: {}", reason));
    std::vector<cupti::MetricName> metrics;
    std::ofstream log = cupti::openLog(logFile);
    std::string chip = listedChip;
    try {
      if (chip == "gpu") {
        Gpu gpu;
        chip = cupti::chipOf(*library, static_cast<size_t>(gpu.info().ordinal), log.is_open() ? &log : nullptr);
      }
      metrics = cupti::metricsOf(*library, chip, log.is_open() ? &log : nullptr);
    } catch (const cupti::Failure &failure) {
      throw UserError(fmt::format("CUPTI does not list the metrics of '{}': {}", listedChip, failure.what()));
    }
    TextTable table({{"metric"}, {"unit"}, {"what"}});
    Json json = envelope(nullptr);
    for (const cupti::MetricName &metric : metrics) {
      table.add({metric.name, metric.unit, metric.description});
      json["metrics"].push_back({{"name", metric.name}, {"unit", metric.unit}, {"description", metric.description}});
    }
    deliver(table.text(), json);
    return kOk;
  }

  std::string device = "gpu", counters = "auto", listedChip, logFile;
  std::vector<std::string> variants, shapes, masks, dtypes, extra;
  bool compare = false, inProcess = false;
  uint64_t seed = 1;
};

} // namespace

std::unique_ptr<Command> makeProfileCommand() { return std::make_unique<ProfileCommand>(); }

} // namespace fagen::lab
