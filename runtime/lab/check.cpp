// fagen: the check loop: case by case, each variant three times on poisoned outputs between guards.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "check.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <map>

namespace fagen::lab {

Placements::Placements(const Case &c) {
  const Shape &s = c.shape;
  q = placeTensor(c.layout, {s.batch, s.heads, s.seqQ, s.headDimQK}, 0);
  k = placeTensor(c.layout, {s.batch, s.kvHeads, s.seqKv, s.headDimQK}, 1);
  v = placeTensor(c.layout, {s.batch, s.kvHeads, s.seqKv, s.headDimV}, 2);
  o = placeTensor(c.layout, {s.batch, s.heads, s.seqQ, s.headDimV}, 3);
  lse = placeLse(c.layout, {s.batch, s.heads, s.seqQ});
}

fagen_problem describeProblem(const Case &c, const Placements &places) {
  fagen_problem problem = makeAbi<fagen_problem>();
  const Shape &s = c.shape;
  problem.pass = FAGEN_PASS_FORWARD;
  problem.dtype = c.dtype == DType::F16 ? FAGEN_DTYPE_F16 : FAGEN_DTYPE_BF16;
  problem.mask = c.mask == Mask::None ? FAGEN_MASK_NONE : FAGEN_MASK_CAUSAL;
  problem.flags = c.lse ? FAGEN_FLAG_LSE : 0;
  problem.batch = s.batch;
  problem.heads = s.heads;
  problem.kv_heads = s.kvHeads;
  problem.seq_q = s.seqQ;
  problem.seq_kv = s.seqKv;
  problem.head_dim_qk = s.headDimQK;
  problem.head_dim_v = s.headDimV;
  std::copy_n(places.q.strides.begin(), 3, problem.q_stride);
  std::copy_n(places.k.strides.begin(), 3, problem.k_stride);
  std::copy_n(places.v.strides.begin(), 3, problem.v_stride);
  std::copy_n(places.o.strides.begin(), 3, problem.o_stride);
  std::copy_n(places.lse.strides.begin(), 2, problem.lse_stride);
  if (c.scale) {
    problem.scale = static_cast<float>(*c.scale);
    problem.has_scale = 1;
  }
  problem.alignment = c.layout == Layout::Offset ? 2 : 16;
  return problem;
}

namespace {

/// A tensor's host image and its memory on the device.
template <typename Word> struct Tensor {
  Tensor(TestDevice &device, const Placement &place)
      : image(place), memory(device, image.allocationBytes()), device(device) {}

  void upload() {
    for (auto &window : image.windows())
      device.upload(memory.address(window.begin * sizeof(Word)), window.words.data(),
                    static_cast<int64_t>(window.words.size() * sizeof(Word)));
  }
  void download() {
    for (auto &window : image.windows())
      device.download(window.words.data(), memory.address(window.begin * sizeof(Word)),
                      static_cast<int64_t>(window.words.size() * sizeof(Word)));
  }
  void poison() {
    image.poison();
    upload();
  }
  void *base() const { return memory.address(image.baseBytes()); }
  MemoryView view(const char *name, bool writable) const {
    return {name, base(), image.placement().span() * static_cast<int64_t>(sizeof(Word)), writable};
  }

  Image<Word> image;
  DeviceMemory memory;
  TestDevice &device;
};

/// The tensors of one case on the device; inputs are in place once constructed.
class CaseMemory {
public:
  CaseMemory(TestDevice &device, const Case &c, const DenseInputs &inputs)
      : testCase(c), places(c), q(device, places.q), k(device, places.k), v(device, places.v), o(device, places.o),
        lse(device, places.lse) {
    auto place = [](Tensor<uint16_t> &tensor, const std::vector<uint16_t> &dense) {
      tensor.image.poison();
      tensor.image.scatter(dense);
      tensor.upload();
    };
    place(q, inputs.q);
    place(k, inputs.k);
    place(v, inputs.v);
  }

  Launch launchOf(const KernelSet &set, const fagen_row &row, int attempt) {
    Launch launch;
    launch.set = &set;
    launch.row = &row;
    launch.attempt = attempt;
    launch.problem = describeProblem(testCase, places);
    launch.problem.variant = row.variant;
    // An absent K and V is legal when there is no key; the junk layout tries it.
    bool nullKv = testCase.layout == Layout::Junk && testCase.shape.seqKv == 0;
    launch.tensors.q = q.base();
    launch.tensors.k = nullKv ? nullptr : k.base();
    launch.tensors.v = nullKv ? nullptr : v.base();
    launch.tensors.o = o.base();
    launch.tensors.lse = testCase.lse ? static_cast<float *>(lse.base()) : nullptr;
    launch.memory = {q.view("Q", false), k.view("K", false), v.view("V", false), o.view("O", true)};
    if (testCase.lse)
      launch.memory.push_back(lse.view("LSE", true));
    return launch;
  }

  /// Whether the inputs and the words around them are as they were uploaded.
  void checkInputs(const DenseInputs &inputs, std::vector<Failure> &failures) {
    auto check = [&](const char *name, Tensor<uint16_t> &tensor, const std::vector<uint16_t> &dense) {
      tensor.download();
      if (tensor.image.collect() != dense)
        failures.push_back({"input", fmt::format("{} was changed", name)});
      checkGuards(name, tensor, failures);
    };
    check("Q", q, inputs.q);
    check("K", k, inputs.k);
    check("V", v, inputs.v);
  }

  template <typename Word>
  static void checkGuards(const char *name, const Tensor<Word> &collected, std::vector<Failure> &failures) {
    if (auto word = collected.image.firstForeignWord())
      failures.push_back(
          {"guard", fmt::format("{} was written outside its elements, at element offset {}", name, *word)});
  }

  const Case &testCase;
  Placements places;
  Tensor<uint16_t> q, k, v, o;
  Tensor<uint32_t> lse;
};

/// A row of a set; the unit that a check reports on.
struct Candidate {
  const KernelSet *set;
  const fagen_row *row;
};

DType dtypeOf(const fagen_row &row) { return row.dtype == FAGEN_DTYPE_F16 ? DType::F16 : DType::BF16; }
Mask maskOf(const fagen_row &row) { return row.mask == FAGEN_MASK_CAUSAL ? Mask::Causal : Mask::None; }

/// Runs one row three times and judges each run.
Measured checkRow(TestDevice &device, CaseMemory &memory, const Candidate &candidate, const Case &c,
                  const Reference &reference) {
  Measured measured;
  std::vector<uint16_t> firstO;
  std::vector<uint32_t> firstLse;
  for (int attempt = 0; attempt < kTolerances.runs; ++attempt) {
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
      Measured judged = judge(c, reference, o, c.lse ? &lse : nullptr);
      judged.failures.insert(judged.failures.end(), measured.failures.begin(), measured.failures.end());
      measured = std::move(judged);
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
      ProblemGroup group{dtypeOf(*row), maskOf(*row), row->head_dim_qk, row->head_dim_v, {}, row->lse != 0};
      auto &entry = groups.try_emplace(group.key(), group, std::vector<Candidate>()).first->second;
      entry.first.tiles.insert({row->tile_rows, row->tile_keys});
      entry.second.push_back({&set, row});
    }
  }

  CheckReport run() {
    plan();
    try {
      for (size_t i = 0; i < jobs.size(); ++i) {
        progress(i, jobs.size(), formatCase(jobs[i].testCase));
        runJob(jobs[i]);
      }
    } catch (const DeviceError &lost) {
      report.failures.push_back({"device", lost.what()});
    }
    progress(jobs.size(), jobs.size(), "");
    return std::move(report);
  }

private:
  struct Job {
    Case testCase;
    const std::vector<Candidate> *candidates;
  };

  void plan() {
    for (const auto &[key, entry] : groups) {
      const auto &[group, candidates] = entry;
      std::vector<Case> cases = options.cases.empty() ? suiteCases(options.suite, group) : options.cases;
      for (const Case &c : cases)
        if (std::make_tuple(c.dtype, c.shape.headDimQK, c.shape.headDimV, c.mask, c.lse || group.lse) == key)
          jobs.push_back({c, &candidates});
    }
    if (jobs.empty())
      throw UserError("no case fits a variant: dtype, mask and head_dim of the case must be those of a variant, and "
                      "LSE asks for lse = on");
  }

  bool fits(const Candidate &candidate, const fagen_problem &problem) {
    fagen_problem named = problem;
    named.variant = candidate.row->variant;
    const fagen_table *table = candidate.set->table();
    fagen_choice choice = makeAbi<fagen_choice>();
    fagen_status status = fagen_query(&table, 1, &named, device.queryDevice(*candidate.row), &choice);
    if (status == FAGEN_OK)
      return choice.row == candidate.row; // else a row of the same name for a nearer target
    if (status != FAGEN_UNSUPPORTED && status != FAGEN_MISALIGNED)
      report.failures.push_back({"query", fmt::format("{}: {}", candidate.row->variant, fagen_last_error())});
    return false;
  }

  void runJob(const Job &job) {
    const Case &c = job.testCase;
    Placements places(c);
    for (const Placement *place : {&places.q, &places.k, &places.v, &places.o, &places.lse})
      if (place->span() > device.largestTensor() / 4) { // at most four bytes an element
        report.tooLarge.push_back(formatCase(c));
        return;
      }
    fagen_problem problem = describeProblem(c, places);
    std::vector<Candidate> fitting;
    for (const Candidate &candidate : *job.candidates)
      if (fits(candidate, problem))
        fitting.push_back(candidate);
    report.skipped += static_cast<int64_t>(job.candidates->size() - fitting.size());
    if (fitting.empty()) {
      // A variant asked for by name need not fit; a whole set must always have a row.
      if (options.variants.empty())
        report.failures.push_back({"fit", fmt::format("no variant fits case \"{}\"", formatCase(c))});
      return;
    }
    DenseInputs inputs = makeInputs(c, options.seed);
    Reference reference = engine.compute(c, inputs);
    CaseMemory memory(device, c, inputs);
    size_t first = report.results.size();
    for (const Candidate &candidate : fitting) {
      auto start = std::chrono::steady_clock::now();
      Measured measured = checkRow(device, memory, candidate, c, reference);
      std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      report.results.push_back({candidate.set, candidate.row, c, std::move(measured), elapsed.count()});
    }
    std::vector<Failure> inputFailures;
    memory.checkInputs(inputs, inputFailures);
    for (size_t i = first; i < report.results.size(); ++i) // whichever variant of this case did it
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

std::string reproLine(const CaseResult &result, const CheckOptions &options) {
  return fmt::format("fagen-run check {} --device {} --variant {} --case \"{}\" --seed {}",
                     result.set->directory().string(), options.deviceFlag, result.row->variant,
                     formatCase(result.testCase), options.seed);
}

CheckReport runCheck(const std::vector<std::unique_ptr<KernelSet>> &sets, TestDevice &device, ReferenceEngine &engine,
                     const CheckOptions &options, const Progress &progress) {
  Checker checker(device, engine, options, progress);
  for (const auto &set : sets)
    checker.add(*set);
  return checker.run();
}

} // namespace fagen::lab
