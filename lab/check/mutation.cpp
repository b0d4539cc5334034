// fagen: runs mutants under the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "mutation.h"

#include "conflicts.h"
#include "lab/support/parallel.h"
#include "lab/support/random.h"
#include "steady.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <mutex>
#include <set>

namespace fagen::lab {

const char *nameOf(MutantOutcome outcome) {
  static constexpr const char *kNames[] = {"caught", "redundant", "not noticed by the emulator",
                                           "not noticed by the analysis", "not minimal"};
  return kNames[static_cast<int>(outcome)];
}

size_t MutationResult::sites() const {
  std::set<unsigned> numbers;
  for (const MutantResult &result : mutants)
    numbers.insert(result.mutant->site);
  return numbers.size();
}

size_t MutationResult::count(MutantOutcome outcome) const {
  return std::count_if(mutants.begin(), mutants.end(),
                       [&](const MutantResult &result) { return result.outcome == outcome; });
}

size_t MutationResult::unexplained() const {
  return std::count_if(mutants.begin(), mutants.end(),
                       [](const MutantResult &result) { return !isExplained(result.outcome); });
}

std::vector<Case> mutationCases(const KernelSet &set, const fagen_row &row, const fagen_device *device) {
  const int64_t rows = row.tile_rows, keys = row.tile_keys, stages = set.facts(row).stages;
  Case base = wholeTilesCase(set, row);
  std::vector<Case> cases = steadyCases(set, row, device); // first, as they open most
  auto add = [&](int64_t seqQ, int64_t seqKv) {
    base.shape.seqQ = seqQ;
    base.shape.seqKv = seqKv;
    if (seqQ > 0 && std::find(cases.begin(), cases.end(), base) == cases.end())
      cases.push_back(base);
  };
  // A causal tile of rows sees up to `rows` keys less at its top.
  const int64_t diagonal = row.mask == FAGEN_MASK_CAUSAL ? rows : 0;
  const int64_t most = 2 * stages + 1;
  add(rows, diagonal + most * keys + keys / 2 + 1);
  add(rows, diagonal + most * keys);
  add(rows + 3, rows + 3 + (stages + 1) * keys); // a second tile of three rows
  for (int64_t steps = 0; steps < most; ++steps) {
    add(rows, diagonal + steps * keys + 1);
    add(rows - 1, diagonal + steps * keys);
    if (diagonal) // the first row sees all but one key of a tile, so the last one sees most of the next
      add(rows, rows + steps * keys + keys - 2);
  }
  if (diagonal) {
    add(rows, rows);     // edge steps only
    add(rows, rows / 2); // rows that see nothing
    add(3, 3);
  }
  return cases;
}

namespace {

/// What a run left: results and findings.
struct Observed {
  std::vector<uint16_t> o;
  std::vector<uint32_t> lse;
  std::vector<Failure> failures;
};

/// One kernel's mutants, on one thread.
class MutantRunner {
public:
  MutantRunner(const KernelSet &set, const fagen_row &row, const MutationOptions &options)
      : set(set), row(row), options(options),
        device(makeEmulatorDevice({.prepare = [this](const Launch &launch, uint32_t index,
                                                     emulator::Options &emulated) { prepare(launch, index, emulated); },
                                   .observe = {}})),
        cases(mutationCases(set, row, device->queryDevice(row))) {
    for (Case &c : cases)
      c = withForm(c, set.form(row), options.seed);
  }

  const std::vector<Case> &problems() const { return cases; }

  /// Runs the kernel as it is. What the emulator has to say of it makes all else void.
  std::vector<Failure> runUnchanged() {
    for (const Case &c : cases) {
      memories.push_back(std::make_unique<CaseMemory>(*device, c, makeInputs(c, options.seed)));
      unchanged.push_back(run(*memories.back(), 0));
      if (!unchanged.back().failures.empty())
        return unchanged.back().failures;
    }
    return {};
  }

  MutantResult run(const MutantCase &mutant, const std::string &symbol, bool isMinimal) {
    changed = &mutant.mutation;
    changedSymbol = symbol;
    MutantResult result{&mutant, MutantOutcome::Redundant, "", "", 0};
    for (int attempt = 0; attempt < options.attempts && result.finding.empty(); ++attempt)
      for (size_t i = 0; i < cases.size() && result.finding.empty(); ++i) {
        result.finding = difference(unchanged[i], run(*memories[i], attempt));
        result.testCase = formatCase(cases[i]);
        result.attempt = attempt;
      }
    if (result.finding.empty())
      result.testCase.clear();
    changed = nullptr;
    result.outcome = judge(mutant, !result.finding.empty(), isMinimal);
    return result;
  }

private:
  void prepare(const Launch &launch, uint32_t index, emulator::Options &emulated) const {
    emulated.maxFindings = 1;
    if (changed && launch.row->launches[index].symbol == changedSymbol)
      emulated.mutations = {*changed};
  }

  Observed run(CaseMemory &memory, int attempt) {
    memory.o.poison();
    memory.lse.poison();
    Observed observed;
    observed.failures = device->run(memory.launchOf(set, row, attempt));
    memory.o.download();
    observed.o = memory.o.image.collect();
    memory.lse.download();
    observed.lse = memory.lse.image.collect();
    return observed;
  }

  static std::string difference(const Observed &before, const Observed &now) {
    if (!now.failures.empty())
      return now.failures.front().message;
    if (now.o != before.o || now.lse != before.lse)
      return "other results than without the change";
    return {};
  }

  static MutantOutcome judge(const MutantCase &mutant, bool isNoticed, bool isMinimal) {
    if (mutant.isNeeded)
      return isNoticed ? MutantOutcome::Caught : MutantOutcome::EmulatorSilent;
    if (isNoticed)
      return MutantOutcome::AnalysisSilent;
    const bool isDeletion = mutant.mutation.action == emulator::Mutation::Disable;
    return isMinimal && isDeletion ? MutantOutcome::NotMinimal : MutantOutcome::Redundant;
  }

  const KernelSet &set;
  const fagen_row &row;
  const MutationOptions &options;
  const emulator::Mutation *changed = nullptr;
  std::string changedSymbol;
  std::unique_ptr<TestDevice> device;
  std::vector<Case> cases;
  std::vector<std::unique_ptr<CaseMemory>> memories;
  std::vector<Observed> unchanged;
};

/// A kernel with the mutants that are to run.
struct Task {
  const KernelSet *set;
  const fagen_row *row;
  const MutantKernel *kernel;
  std::vector<const MutantCase *> mutants;
};

Task taskOf(const std::vector<std::unique_ptr<KernelSet>> &sets, const MutantKernel &kernel) {
  for (const auto &set : sets)
    for (const fagen_row *row : set->rows())
      for (uint32_t i = 0; i < row->launch_count; ++i)
        if (row->launches[i].symbol == kernel.symbol)
          return {set.get(), row, &kernel, {}};
  throw UserError(
      fmt::format("{} of the mutants is in none of the kernel sets; both must come from the same spec", kernel.symbol));
}

/// Leaves `sample` of the mutants, each set of them as likely as any other.
void drawSample(std::vector<Task> &tasks, size_t sample, uint64_t seed) {
  std::vector<std::pair<uint32_t, const MutantCase *>> drawn;
  for (const Task &task : tasks)
    for (const MutantCase *mutant : task.mutants)
      drawn.emplace_back(philox({static_cast<uint32_t>(drawn.size()), 0, 0, 0}, seed)[0], mutant);
  std::sort(drawn.begin(), drawn.end());
  drawn.resize(std::min(sample, drawn.size()));
  std::set<const MutantCase *> kept;
  for (const auto &[key, mutant] : drawn)
    kept.insert(mutant);
  for (Task &task : tasks)
    std::erase_if(task.mutants, [&](const MutantCase *mutant) { return !kept.contains(mutant); });
  std::erase_if(tasks, [](const Task &task) { return task.mutants.empty(); });
}

/// The line op of every mutant must be what the kernel has there: a list from another version would change nothing.
void checkLines(const Task &task) {
  for (uint32_t i = 0; i < task.row->launch_count; ++i) {
    if (task.row->launches[i].symbol != task.kernel->symbol)
      continue;
    const std::vector<OpLine> &ops = task.set->ops(*task.row, i);
    for (const MutantCase *mutant : task.mutants)
      if (std::none_of(ops.begin(), ops.end(), [&](const OpLine &op) {
            return op.line == mutant->mutation.line && op.op == mutant->op && op.site == mutant->site;
          }))
        throw UserError(fmt::format("{} has no {} on line {}; make kernels and mutants with the same fagen",
                                    task.kernel->symbol, mutant->op, mutant->mutation.line));
  }
}

} // namespace

std::vector<MutationResult> runMutation(const std::vector<std::unique_ptr<KernelSet>> &sets,
                                        const std::vector<MutantKernel> &kernels, const MutationOptions &options,
                                        const Progress &progress) {
  std::vector<Task> tasks;
  size_t total = 0, done = 0;
  for (const MutantKernel &kernel : kernels)
    if (options.pattern.empty() || matchesPattern(options.pattern, kernel.symbol)) {
      tasks.push_back(taskOf(sets, kernel));
      for (const MutantCase &mutant : kernel.mutants)
        tasks.back().mutants.push_back(&mutant);
      checkLines(tasks.back());
    }
  if (tasks.empty())
    throw UserError(fmt::format("no kernel is called '{}'; * stands for any characters", options.pattern));
  if (options.sample)
    drawSample(tasks, options.sample, options.seed);
  for (const Task &task : tasks)
    total += task.mutants.size();

  std::vector<MutationResult> results(tasks.size());
  std::mutex progressLock;
  parallelFor(static_cast<int64_t>(tasks.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Task &task = tasks[i];
      MutationResult &result = results[i];
      const auto start = std::chrono::steady_clock::now();
      result.set = task.set;
      result.row = task.row;
      result.kernel = task.kernel;
      MutantRunner runner(*task.set, *task.row, options);
      result.cases = runner.problems();
      result.failures = runner.runUnchanged();
      for (const MutantCase *mutant : task.mutants) {
        if (result.failures.empty())
          result.mutants.push_back(runner.run(*mutant, task.kernel->symbol, task.kernel->policy == "minimal"));
        const std::lock_guard guard(progressLock);
        progress(done++, total, task.kernel->symbol);
      }
      result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
  });
  progress(total, total, "");
  return results;
}

} // namespace fagen::lab
