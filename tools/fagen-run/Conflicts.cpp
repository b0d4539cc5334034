// fagen: fagen-run conflicts: bank conflicts of shared memory, counted by the emulator, and maps of them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/check/conflicts.h"
#include "Command.h"
#include "lab/check/bank_map.h"
#include "lab/kernel_set/forms.h"
#include "lab/support/write_file.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fagen::lab {

namespace {

constexpr const char *kConflictsFooter = R"(
A request is what a warp reads or writes with one instruction. It needs a wavefront for each different word that a bank must
give in one phase; ideal is one a phase. docs/Conflicts.md has the rules.

Examples:
  fagen-run conflicts generated/l4_fp16
  fagen-run conflicts generated/l4_fp16 --kernel '*_prefill_*_none' --svg maps
  fagen-run conflicts generated --fail-on ldmatrix,16B      exit 2 when one of these kinds has conflicts
  fagen-run conflicts generated/l4_fp16 --case "1,2,2,128,512,64" --json)";

std::string accessText(const ConflictSite &site) { return fmt::format("{} {}B", site.counts.kind, site.counts.bytes); }

Json siteJson(const ConflictSite &site) {
  Json json{{"line", site.counts.line},
            {"op", site.op},
            {"spec", site.spec},
            {"kind", site.counts.kind},
            {"bytes", site.counts.bytes},
            {"requests", site.counts.requests},
            {"wavefronts", site.counts.wavefronts},
            {"ideal", site.counts.ideal},
            {"excess", site.excess()},
            {"worst", Json::array()}};
  for (unsigned address : site.counts.worst)
    json["worst"].push_back(address == ~0u ? Json(nullptr) : Json(address));
  return json;
}

Json resultJson(const ConflictResult &result) {
  Json json{{"variant", result.row->variant}, {"target", result.row->target},
            {"symbol", result.symbol},        {"case", formatCase(result.testCase)},
            {"seconds", result.seconds},      {"sites", Json::array()},
            {"failures", Json::array()}};
  for (const ConflictSite &site : result.sites)
    json["sites"].push_back(siteJson(site));
  for (const Failure &failure : result.failures)
    json["failures"].push_back(failure.message);
  return json;
}

std::string conflictTable(const std::vector<ConflictResult> &results) {
  TextTable table({{"kernel"},
                   {"line", true},
                   {"op"},
                   {"spec"},
                   {"access"},
                   {"requests", true},
                   {"wavefronts", true},
                   {"ideal", true},
                   {"excess", true}});
  for (const ConflictResult &result : results)
    for (const ConflictSite &site : result.sites)
      table.add({result.row->variant, fmt::format("{}", site.counts.line), site.op, site.spec, accessText(site),
                 fmt::format("{}", site.counts.requests), fmt::format("{}", site.counts.wavefronts),
                 fmt::format("{}", site.counts.ideal), fmt::format("{}", site.excess())});
  return table.text();
}

class ConflictsCommand : public Command {
public:
  ConflictsCommand()
      : Command("conflicts", "count bank conflicts of shared memory on the emulator; --svg draws them") {}

  void addOptions(CLI::App &app) override {
    app.add_option("--kernel", options.pattern, "only variants of this name; * stands for any characters, ? for one");
    app.add_option("--case,--problem,--shape", cases,
                   "instead of two tiles of rows and three of keys: as check takes it; may be repeated");
    app.add_option("--seed", options.seed, "of the inputs")->capture_default_str();
    app.add_option("--svg", mapDirectory, "write a bank map of the worst request of each site into this directory");
    app.add_option(
           "--fail-on", failOn,
           fmt::format("exit 2 when accesses of these kinds have conflicts: {}", fmt::join(conflictKinds(), ", ")))
        ->delimiter(',');
    app.footer(kConflictsFooter);
  }

  int run() override {
    const auto kinds = conflictKinds();
    for (const std::string &kind : failOn)
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
        throw UserError(fmt::format("unknown kind '{}' for --fail-on; known: {}", kind, fmt::join(kinds, ", ")));
    const auto sets = loadKernelSets(directories);
    for (const std::string &text : cases)
      options.cases.push_back(caseFor(sets, text));
    const std::vector<ConflictResult> results = runConflicts(sets, options, ProgressLine());
    Json json = envelope(nullptr);
    json["conflicts"] = Json::array();
    for (const ConflictResult &result : results)
      json["conflicts"].push_back(resultJson(result));
    if (!mapDirectory.empty())
      writeMaps(results);
    deliver(conflictTable(results), json);
    return judge(results);
  }

private:
  void writeMaps(const std::vector<ConflictResult> &results) const {
    const std::filesystem::path directory = mapDirectory;
    makeDirectory(mapDirectory);
    for (const ConflictResult &result : results)
      for (const ConflictSite &site : result.sites) {
        const emulator::BankSite &counts = site.counts;
        const auto path =
            directory / fmt::format("{}_line{}_{}_{}B.svg", result.symbol, counts.line, counts.kind, counts.bytes);
        const std::string map =
            bankMap(counts,
                    fmt::format("{} line {}: {}{}", result.row->variant, counts.line,
                                site.op.empty() ? accessText(site) : site.op,
                                site.spec.empty() ? "" : fmt::format(" ({})", site.spec)),
                    fmt::format("{} bytes a lane by {}; the worst of {} requests, which have {} wavefronts, {} "
                                "without conflicts",
                                counts.bytes, counts.kind, counts.requests, counts.wavefronts, counts.ideal));
        writeFile(path.string(), map);
      }
  }

  /// Says on standard error what went wrong; gives the exit code.
  int judge(const std::vector<ConflictResult> &results) const {
    bool failed = false;
    for (const ConflictResult &result : results) {
      for (const Failure &failure : result.failures) {
        fmt::print(stderr, "{}: {}\n", result.row->variant, failure.message);
        failed = true;
      }
      for (const ConflictSite &site : result.sites)
        for (const std::string &kind : failOn)
          if (site.excess() > 0 && isOfKind(site.counts, kind)) {
            fmt::print(stderr, "{} line {}: {} of {}: {} wavefronts beyond ideal\n", result.row->variant,
                       site.counts.line, accessText(site), site.op.empty() ? "no op" : site.op, site.excess());
            failed = true;
            break;
          }
    }
    return failed ? kFailedCheck : kOk;
  }

  ConflictOptions options;
  std::vector<std::string> cases, failOn;
  std::string mapDirectory;
};

} // namespace

std::unique_ptr<Command> makeConflictsCommand() { return std::make_unique<ConflictsCommand>(); }

} // namespace fagen::lab
