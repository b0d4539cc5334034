// fagen: the check loop: case by case, each variant three times or more on poisoned outputs between guards.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "check.h"
#include "lab/kernel_set/forms.h"
#include "runtime/src/compile/cache.h"
#include "steady.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

namespace fagen::lab {

namespace {

/// A row of a set; the unit that a check reports on.
struct Candidate {
  const KernelSet *set;
  const fagen_row *row;
};

/// Of the first of so many batches.
std::string digestOf(const std::vector<uint16_t> &o, const std::vector<uint32_t> &lse, int64_t batches = 1) {
  const auto bytes = [&](const auto &words) {
    const size_t count = words.size() / static_cast<size_t>(std::max<int64_t>(batches, 1));
    return std::string_view(reinterpret_cast<const char *>(words.data()), count * sizeof(words[0]));
  };
  return hashParts({bytes(o), bytes(lse)});
}

/// Runs one row `runs` times and judges each run; `begins` is told of each.
Measured checkRow(TestDevice &device, CaseMemory &memory, const Candidate &candidate, const Case &c,
                  const Reference &reference, int runs, const std::function<void(int)> &begins) {
  Measured measured;
  std::vector<uint16_t> firstO;
  std::vector<uint32_t> firstLse;
  for (int attempt = 0; attempt < runs; ++attempt) {
    begins(attempt);
    memory.o.poison();
    memory.lse.poison();
    std::vector<Failure> failures = device.run(memory.launchOf(*candidate.set, *candidate.row, attempt));
    if (!failures.empty()) {
      measured.failures.insert(measured.failures.end(), failures.begin(), failures.end());
      return measured;
    }
    memory.o.download();
    memory.lse.download();
    std::vector<uint16_t> o = memory.o.image.collect();
    // With LSE off every word of its buffer is a guard.
    std::vector<uint32_t> lse = c.lse ? memory.lse.image.collect() : std::vector<uint32_t>();
    CaseMemory::checkGuards("O", memory.o, measured.failures);
    CaseMemory::checkGuards("LSE", memory.lse, measured.failures);
    if (attempt == 0) {
      const Arithmetic arithmetic = arithmeticOf(candidate.set->facts(*candidate.row));
      Measured judged = judge(c, reference, arithmetic, o, c.lse ? &lse : nullptr);
      judged.failures.insert(judged.failures.end(), measured.failures.begin(), measured.failures.end());
      measured = std::move(judged);
      measured.digest = digestOf(o, lse);
      measured.firstBatchDigest = digestOf(o, lse, c.shape.batch);
      firstO = std::move(o);
      firstLse = std::move(lse);
    } else if (o != firstO || lse != firstLse) {
      measured.failures.push_back({"determinism", fmt::format("run {} gave other bits of {} than the first",
                                                              attempt + 1, o != firstO ? "O" : "LSE")});
    }
    if (!measured.failures.empty())
      return measured;
  }
  return measured;
}

class Checker {
public:
  Checker(TestDevice &device, ReferenceEngine &engine, const CheckOptions &options, const Progress &progress)
      : device(device), engine(engine), options(options), progress(progress) {}

  void add(const KernelSet &set) {
    for (const fagen_row *row : set.rows()) {
      if (!options.variants.empty() &&
          std::find(options.variants.begin(), options.variants.end(), row->variant) == options.variants.end())
        continue;
      const Case c = caseOfRow(set, *row);
      const ProblemGroup group{c.dtype, c.mask, c.shape.headDimQK, c.shape.headDimV, {}, c.lse, c.halfAccum,
                               c.form,  c.kv};
      auto &entry = groups.try_emplace(group.key(), group, std::vector<Candidate>()).first->second;
      entry.first.tiles.insert({row->tile_rows, row->tile_keys});
      entry.second.push_back({&set, row});
    }
  }

  CheckReport run() {
    plan();
    try {
      for (size_t i = 0; i < jobs.size() && !(options.endsAtFailure && hasFailed()); ++i)
        runJob(i);
    } catch (const DeviceError &lost) {
      report.failures.push_back({"device", lost.what()});
    }
    progress(jobs.size(), jobs.size(), "");
    return std::move(report);
  }

private:
  bool hasFailed() const {
    return !report.failures.empty() ||
           std::any_of(report.results.begin(), report.results.end(),
                       [](const auto &result) { return !result.measured.failures.empty(); });
  }

  struct Job {
    Case testCase;
    std::vector<Candidate> candidates;
  };

  void plan() {
    for (const auto &[key, entry] : groups) {
      const auto &[group, candidates] = entry;
      const size_t firstOfGroup = jobs.size();
      std::vector<Case> cases = options.cases.empty() ? suiteCases(options.suite, group) : options.cases;
      for (Case c : cases) {
        if (impliesForm(c))
          c.form = group.form;
        if (std::make_tuple(c.dtype, c.kv, c.halfAccum, c.shape.headDimQK, c.shape.headDimV, c.mask, c.form,
                            c.lse || group.lse) == key)
          jobs.push_back({c, candidates});
      }
      const size_t firstSteady = jobs.size();
      if (options.cases.empty() && hasSteadyCases(options.suite))
        planSteady(candidates);
      if (options.endsAtFailure)
        std::rotate(jobs.begin() + firstOfGroup, jobs.begin() + firstSteady, jobs.end());
    }
    if (jobs.empty())
      throw UserError(fmt::format("no case fits a variant; they take {}: give a case of these, and ask for LSE only of "
                                  "a kernel with lse = on",
                                  describeGroups()));
    std::vector<Job> mine;
    for (size_t i = options.part - 1; i < jobs.size(); i += options.parts)
      mine.push_back(jobs[i]);
    if (mine.empty())
      throw UserError(fmt::format("part {} of {} is empty: there are {} cases; take fewer parts", options.part,
                                  options.parts, jobs.size()));
    jobs = std::move(mine);
  }

  /// A case that names neither mask nor form is of any form where all variants have one.
  /// What the variants compute, as a case says it; the first few.
  std::string describeGroups() const {
    constexpr size_t kMost = 6;
    std::vector<std::string> known;
    for (const auto &[key, entry] : groups) {
      const ProblemGroup &group = entry.first;
      const bool hasOwnV = group.headDimV != group.headDimQK;
      known.push_back(fmt::format(
          "head_dim {}{} dtype={} {}{}{}", group.headDimQK, hasOwnV ? fmt::format(":{}", group.headDimV) : "",
          nameOf(group.dtype), group.form.empty() ? fmt::format("mask={}", nameOf(group.mask)) : "a form of their own",
          group.halfAccum ? " accum=f16" : "",
          group.kv == KvDType::Same ? "" : fmt::format(" kv={}", nameOf(group.kv))));
    }
    const size_t more = known.size() - std::min(known.size(), kMost);
    known.resize(known.size() - more);
    return fmt::format("{}{}", fmt::join(known, ", "), more ? fmt::format(" and {} more", more) : "");
  }

  bool impliesForm(const Case &c) const {
    return c.form.empty() && c.mask == Mask::None && std::all_of(groups.begin(), groups.end(), [](const auto &group) {
             return !group.second.first.form.empty();
           });
  }

  /// A variant's own cases, once each: variants with the same schedule but for their copies share them.
  void planSteady(const std::vector<Candidate> &candidates) {
    const size_t first = jobs.size();
    for (const Candidate &candidate : candidates)
      for (const Case &c : steadyCases(*candidate.set, *candidate.row, device.queryDevice(*candidate.row))) {
        auto job =
            std::find_if(jobs.begin() + first, jobs.end(), [&](const Job &known) { return known.testCase == c; });
        if (job == jobs.end())
          job = jobs.insert(job, {c, {}});
        job->candidates.push_back(candidate);
      }
  }

  void runJob(size_t index) {
    const Job &job = jobs[index];
    progress(index, jobs.size(), formatCase(job.testCase));
    const Candidate &first = job.candidates.front(); // of the same form are all
    const Case c = withForm(job.testCase, first.set->form(*first.row), options.seed);
    Placements places(c);
    for (const Placement *place : {&places.q, &places.k, &places.v, &places.o, &places.lse})
      if (place->span() > device.largestTensor() / 4) { // at most four bytes an element
        report.tooLarge.push_back(formatCase(c));
        return;
      }
    fagen_problem problem = describeProblem(c, places);
    std::vector<Candidate> fitting;
    for (const Candidate &candidate : job.candidates)
      if (fitsRow(device, *candidate.set, *candidate.row, problem, report.failures))
        fitting.push_back(candidate);
    report.skipped += static_cast<int64_t>(job.candidates.size() - fitting.size());
    if (fitting.empty()) {
      // A variant asked for by name need not fit; a whole set must always have a row.
      if (options.variants.empty())
        report.failures.push_back({"fit", fmt::format("no variant fits case \"{}\"", formatCase(c))});
      return;
    }
    DenseInputs inputs = makeInputs(c, options.seed);
    Reference reference = engine.compute(c, inputs);
    CaseMemory memory(device, c, inputs);
    const size_t firstResult = report.results.size();
    for (const Candidate &candidate : fitting) {
      auto start = std::chrono::steady_clock::now();
      const int runs = options.runs * options.seeds;
      Measured measured = checkRow(device, memory, candidate, c, reference, runs, [&](int run) {
        const std::string which = runs == kTolerances.runs ? "" : fmt::format(", run {} of {}", run + 1, runs);
        progress(index, jobs.size(), fmt::format("{}: {}{}", formatCase(c), candidate.row->variant, which));
      });
      std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      report.results.push_back({candidate.set, candidate.row, job.testCase, std::move(measured), elapsed.count(),
                                c.arguments ? c.arguments->arguments.numbers : c.numbers});
    }
    std::vector<Failure> inputFailures;
    memory.checkInputs(inputs, inputFailures);
    for (size_t i = firstResult; i < report.results.size(); ++i) // whichever variant of this case did it
      report.results[i].measured.failures.insert(report.results[i].measured.failures.end(), inputFailures.begin(),
                                                 inputFailures.end());
  }

  TestDevice &device;
  ReferenceEngine &engine;
  const CheckOptions &options;
  const Progress &progress;
  std::map<decltype(ProblemGroup().key()), std::pair<ProblemGroup, std::vector<Candidate>>> groups;
  std::vector<Job> jobs;
  CheckReport report;
};

} // namespace

bool CheckReport::passed() const {
  return failures.empty() && !results.empty() &&
         std::all_of(results.begin(), results.end(),
                     [](const CaseResult &result) { return result.measured.failures.empty(); });
}

void requireRuns(const CheckReport &report, const CheckOptions &options) {
  if (!report.results.empty() || (options.cases.empty() && options.variants.empty()))
    return;
  for (const Failure &failure : report.failures) {
    if (failure.criterion == "device")
      return; // not of the user's making
    throw UserError(failure.message);
  }
  if (!report.tooLarge.empty())
    throw UserError(fmt::format("case \"{}\" is too large for this device; take fewer batches, heads or rows",
                                report.tooLarge.front()));
  throw UserError("no case fits a chosen variant: strides, alignment and sizes of a case must be what the variant "
                  "takes; fagen-run list --why SHAPE tells which one does");
}

std::string reproLine(const CaseResult &result, const CheckOptions &options) {
  return fmt::format("fagen-run check {} --device {} --variant {} --case \"{}\" --seed {}{}{}",
                     result.set->directory().string(), options.deviceFlag, result.row->variant,
                     formatCase(result.testCase), options.seed,
                     options.runs == kTolerances.runs ? "" : fmt::format(" --runs {}", options.runs),
                     options.seeds == 1 ? "" : fmt::format(" --seeds {}", options.seeds));
}

CheckReport runCheck(const std::vector<std::unique_ptr<KernelSet>> &sets, TestDevice &device, ReferenceEngine &engine,
                     const CheckOptions &options, const Progress &progress) {
  Checker checker(device, engine, options, progress);
  for (const auto &set : sets)
    checker.add(*set);
  return checker.run();
}

} // namespace fagen::lab
