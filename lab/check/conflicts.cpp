// fagen: bank conflicts of variants, counted by the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conflicts.h"
#include "lab/kernel_set/forms.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>

namespace fagen::lab {

Case wholeTilesCase(const KernelSet &set, const fagen_row &row) {
  Case c = caseOfRow(set, row);
  c.shape = {1, 1, 1, 2 * int64_t{row.tile_rows}, 3 * int64_t{row.tile_keys}, row.head_dim_qk, row.head_dim_v};
  return c;
}

bool matchesPattern(std::string_view pattern, std::string_view text) {
  if (pattern.empty())
    return text.empty();
  if (pattern[0] == '*')
    return matchesPattern(pattern.substr(1), text) || (!text.empty() && matchesPattern(pattern, text.substr(1)));
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) &&
         matchesPattern(pattern.substr(1), text.substr(1));
}

std::vector<std::string> conflictKinds() {
  return {"all", "ldmatrix", "load", "store", "cp_async", "wmma_load", "wmma_store", "2B", "4B", "8B", "16B"};
}

bool isOfKind(const emulator::BankSite &site, std::string_view kind) {
  if (kind == "all" || kind == site.kind)
    return true;
  // The width of plain accesses; asynchronous copies and matrices are kinds of their own.
  return (site.kind == "load" || site.kind == "store") && kind == fmt::format("{}B", site.bytes);
}

namespace {

/// The op that stands on the line, if the manifest names one.
const OpLine *opOf(const std::vector<OpLine> &ops, int line) {
  auto op = std::find_if(ops.begin(), ops.end(), [&](const OpLine &o) { return o.line == line; });
  return op == ops.end() ? nullptr : &*op;
}

class ConflictRunner {
public:
  explicit ConflictRunner(uint64_t seed) : seed(seed) {
    EmulatorHooks hooks;
    hooks.prepare = [](const Launch &, uint32_t, emulator::Options &options) {
      options.banks = true;
      options.races = false; // fagen-run check looks for them
    };
    hooks.observe = [this](const Launch &launch, uint32_t index, const emulator::Report &report) {
      collect(launch, index, report);
    };
    device = makeEmulatorDevice(std::move(hooks));
  }

  void run(const KernelSet &set, const fagen_row &row, const Case &drawn) {
    const Case c = withForm(drawn, set.form(row), seed);
    std::vector<Failure> failures;
    if (!fitsRow(*device, set, row, describeProblem(c, Placements(c)), failures) && failures.empty())
      return;
    const auto start = std::chrono::steady_clock::now();
    const size_t first = results.size();
    if (failures.empty()) {
      CaseMemory memory(*device, c, makeInputs(c, seed));
      memory.o.poison();
      memory.lse.poison();
      testCase = &c;
      failures = device->run(memory.launchOf(set, row, 0));
    }
    if (results.size() == first)
      results.push_back({&set, &row, c, "", {}, {}, 0});
    results.back().failures = failures;
    results.back().seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  std::vector<ConflictResult> results;

private:
  void collect(const Launch &launch, uint32_t index, const emulator::Report &report) {
    ConflictResult result{launch.set, launch.row, *testCase, launch.row->launches[index].symbol, {}, {}, 0};
    const std::vector<OpLine> &ops = launch.set->ops(*launch.row, index);
    for (const emulator::BankSite &counts : report.banks) {
      const OpLine *op = opOf(ops, counts.line);
      result.sites.push_back({counts, op ? op->op : "", op ? op->spec : ""});
    }
    results.push_back(std::move(result));
  }

  uint64_t seed;
  const Case *testCase = nullptr;
  std::unique_ptr<TestDevice> device;
};

} // namespace

std::vector<ConflictResult> runConflicts(const std::vector<std::unique_ptr<KernelSet>> &sets,
                                         const ConflictOptions &options, const Progress &progress) {
  std::vector<std::pair<const KernelSet *, const fagen_row *>> chosen;
  for (const auto &set : sets)
    for (const fagen_row *row : set->rows())
      if (options.pattern.empty() || matchesPattern(options.pattern, row->variant))
        chosen.emplace_back(set.get(), row);
  if (chosen.empty())
    throw UserError(fmt::format("no variant is called '{}'; fagen-run list shows all; * stands for any characters",
                                options.pattern));
  ConflictRunner runner(options.seed);
  for (size_t i = 0; i < chosen.size(); ++i) {
    const auto [set, row] = chosen[i];
    progress(i, chosen.size(), row->variant);
    for (const Case &c : options.cases.empty() ? std::vector<Case>{wholeTilesCase(*set, *row)} : options.cases)
      runner.run(*set, *row, c);
  }
  progress(chosen.size(), chosen.size(), "");
  if (runner.results.empty())
    throw UserError("no case fits a variant: dtype, mask and head_dim of the case must be those of a variant, and LSE "
                    "asks for lse = on");
  return std::move(runner.results);
}

} // namespace fagen::lab
