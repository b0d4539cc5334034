// fagen: many launches: repeated ones, bit for bit, and random ones.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "soak.h"
#include "lab/kernel_set/forms.h"
#include "lab/support/random.h"
#include "runtime/src/compile/cache.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <fmt/format.h>
#include <map>
#include <optional>

namespace fagen::lab {

namespace {

constexpr size_t kBatch = 512;  ///< random launches that are made up at once
constexpr uint32_t kDraws = 64; ///< of problems for a launch, until its variant takes one
constexpr int64_t kAtOnce = 32; ///< repeated launches that are not waited for one by one

/// Q, K, V, O and LSE of the largest random problem, for each launch to use from their beginnings.
class Arena {
public:
  Arena(TestDevice &device, int64_t elements, int64_t rows, uint64_t seed)
      : q(device, elements * 2), k(device, elements * 2), v(device, elements * 2), o(device, elements * 2),
        lse(device, rows * 4) {
    Case dense;
    dense.shape = {1, 1, 1, rows, rows, elements / rows, elements / rows};
    const DenseInputs inputs = makeInputs(dense, seed);
    const auto place = [&](DeviceMemory &memory, const std::vector<uint16_t> &values) {
      device.upload(memory.address(), values.data(), static_cast<int64_t>(values.size() * 2));
    };
    place(q, inputs.q);
    place(k, inputs.k);
    place(v, inputs.v);
  }
  DeviceMemory q, k, v, o, lse;
};

/// Of zeros, as large as the launches of a row so far need; each leaves it so. What was outgrown stays: launches that
/// are still to come have its address.
class Workspaces {
public:
  explicit Workspaces(TestDevice &device) : device(device) {}
  void *of(const fagen_row &row, size_t bytes) {
    Grown &grown = rows[&row];
    if (grown.memory.empty() || bytes > grown.size) {
      grown.size = std::max<size_t>(2 * bytes, 4096);
      grown.memory.push_back(std::make_unique<DeviceMemory>(device, static_cast<int64_t>(grown.size)));
      const std::vector<char> zeros(grown.size);
      device.upload(grown.memory.back()->address(), zeros.data(), static_cast<int64_t>(grown.size));
    }
    return grown.memory.back()->address();
  }

private:
  struct Grown {
    size_t size = 0;
    std::vector<std::unique_ptr<DeviceMemory>> memory;
  };
  TestDevice &device;
  std::map<const fagen_row *, Grown> rows;
};

/// The row's choice for the problem, or none when it does not take it.
std::optional<fagen_choice> choose(TestDevice &device, const SoakedVariant &variant, const fagen_problem &problem) {
  const fagen_table *table = variant.set->table();
  fagen_choice choice = makeAbi<fagen_choice>();
  if (fagen_query(&table, 1, &problem, device.queryDevice(*variant.row), &choice) != FAGEN_OK ||
      choice.row != variant.row)
    return std::nullopt;
  return choice;
}

template <typename Word> std::string_view bytesOf(const std::vector<Word> &words) {
  return {reinterpret_cast<const char *>(words.data()), words.size() * sizeof(Word)};
}

/// The first result of a tensor stays where it is; the others are made next to it, some at a time, on the same poison.
template <typename Word> class Repeated {
public:
  Repeated(TestDevice &device, DeviceTensor<Word> &first, int64_t atOnce)
      : device(device), first(first), bytes(first.image.allocationBytes()), pitch((bytes + 255) / 256 * 256),
        pristine(device, bytes), again(device, pitch * atOnce) {
    first.poison();
    device.copy(pristine.address(), first.memory.address(), bytes);
  }
  /// Where a run writes, the `which`-th of some.
  void *prepare(int64_t which) {
    device.copy(again.address(which * pitch), pristine.address(), bytes);
    return again.address(which * pitch + first.image.baseBytes());
  }
  MemoryPair pair(int64_t which) { return {again.address(which * pitch), first.memory.address(), bytes / 4 * 4}; }

private:
  TestDevice &device;
  DeviceTensor<Word> &first;
  int64_t bytes, pitch;
  DeviceMemory pristine, again;
};

class Soak {
public:
  Soak(TestDevice &device, ReferenceEngine &engine, const SoakOptions &options, const Progress &progress)
      : device(device), engine(engine), options(options), progress(progress), workspaces(device) {}

  SoakReport run(const std::vector<std::unique_ptr<KernelSet>> &sets) {
    for (const auto &set : sets)
      for (const fagen_row *row : set->rows())
        if (options.variants.empty() ||
            std::find(options.variants.begin(), options.variants.end(), row->variant) != options.variants.end())
          add(*set, *row);
    // Variants of one problem share its inputs and reference.
    std::stable_sort(report.variants.begin(), report.variants.end(),
                     [](const auto &a, const auto &b) { return formatCase(a.repeated) < formatCase(b.repeated); });
    const std::unique_ptr<Load> load = options.load ? device.load() : nullptr;
    report.loaded = load != nullptr;
    try {
      for (size_t i = 0; i < report.variants.size() && !report.deviceLost; ++i) {
        progress(i, report.variants.size(), fmt::format("repeat {}", report.variants[i].row->variant));
        repeat(report.variants[i]);
      }
      if (!report.deviceLost)
        launchRandomly();
    } catch (const DeviceError &lost) {
      report.failures.push_back({"device", lost.what()});
      report.deviceLost = true;
    }
    progress(1, 1, "");
    return std::move(report);
  }

private:
  void add(const KernelSet &set, const fagen_row &row) {
    SoakedVariant &variant = report.variants.emplace_back();
    variant.set = &set;
    variant.row = &row;
    variant.repeated = repeatedCase(variant);
  }

  void fail(SoakedVariant &variant, const Case &c, std::vector<Failure> failures, const Sequence &sequence) {
    if (variant.again.empty())
      variant.again = fmt::format("fagen-run soak {} --device {} --variant {} --case \"{}\" --seed {}",
                                  variant.set->directory().string(), options.deviceFlag, variant.row->variant,
                                  formatCase(c), options.seed);
    for (Failure &failure : failures) {
      failure.message = fmt::format("\"{}\": {}", formatCase(c), failure.message);
      variant.failures.push_back(std::move(failure));
    }
    if (sequence.hangs) {
      report.deviceLost = true;
      options.onDeviceLost(report);
    }
  }

  Case repeatedCase(const SoakedVariant &variant) const {
    const fagen_row &row = *variant.row;
    Case c = caseOfRow(*variant.set, row);
    c.shape = options.repeated;
    c.shape.headDimQK = row.head_dim_qk;
    c.shape.headDimV = row.head_dim_v;
    for (const Case &given : options.cases)
      if (given.dtype == c.dtype && given.mask == c.mask && given.form == c.form && given.halfAccum == c.halfAccum &&
          given.shape.headDimQK == row.head_dim_qk && given.shape.headDimV == row.head_dim_v)
        return given;
    return c;
  }

  void prepareProblem(const Case &c) {
    const std::string key = formatCase(c);
    if (key == prepared)
      return;
    inputs = makeInputs(c, options.seed);
    reference = engine.compute(c, inputs);
    prepared = key;
  }

  void repeat(SoakedVariant &variant) {
    const auto start = std::chrono::steady_clock::now();
    const Case c = withForm(variant.repeated, variant.set->form(*variant.row), options.seed);
    fagen_problem problem = describeProblem(c, Placements(c));
    problem.variant = variant.row->variant;
    const std::optional<fagen_choice> choice = choose(device, variant, problem);
    if (!choice || options.repeats < 1)
      return;
    prepareProblem(c);
    CaseMemory memory(device, c, inputs);
    const int64_t atOnce = std::min(kAtOnce, options.repeats);
    Repeated<uint16_t> o(device, memory.o, atOnce);
    Repeated<uint32_t> lse(device, memory.lse, atOnce);
    while (variant.repeats < options.repeats) {
      const bool first = variant.repeats == 0;
      const int64_t count = first ? 1 : std::min(atOnce, options.repeats - variant.repeats);
      std::vector<Launch> launches;
      for (int64_t i = 0; i < count; ++i) {
        launches.push_back(memory.launchOf(*variant.set, *variant.row, static_cast<int>(variant.repeats + i)));
        launches.back().workspace = workspaces.of(*variant.row, choice->workspace_bytes);
        if (!first)
          redirect(launches.back(), o.prepare(i), lse.prepare(i));
      }
      const Sequence sequence = device.runAll(launches, options.patience);
      if (!sequence.hangs && !first)
        compare(variant, o, lse, static_cast<int64_t>(sequence.ended));
      variant.repeats += static_cast<int64_t>(sequence.ended);
      if (!sequence.failures.empty())
        fail(variant, c, sequence.failures, sequence);
      if (!sequence.failures.empty() || (first && !holds(variant, c, memory)))
        break;
    }
    if (variant.different)
      fail(variant, c,
           {{"determinism", fmt::format("{} of {} runs gave other bits than the first; run {} was the first to",
                                        variant.different, variant.repeats, variant.firstDifferent)}},
           {});
    variant.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  static void redirect(Launch &launch, void *o, void *lse) {
    launch.tensors.o = o;
    if (launch.tensors.lse)
      launch.tensors.lse = static_cast<float *>(lse);
    for (MemoryView &view : launch.memory)
      if (view.writable)
        view.begin = view.name == "O" ? o : lse;
  }

  /// Judges the first result, which the others are compared with, and leaves it in place.
  bool holds(SoakedVariant &variant, const Case &c, CaseMemory &memory) {
    memory.o.download();
    memory.lse.download();
    const std::vector<uint16_t> o = memory.o.image.collect();
    const std::vector<uint32_t> lse = c.lse ? memory.lse.image.collect() : std::vector<uint32_t>();
    const Arithmetic arithmetic = arithmeticOf(variant.set->facts(*variant.row));
    Measured measured = judge(c, reference, arithmetic, o, c.lse ? &lse : nullptr);
    CaseMemory::checkGuards("O", memory.o, measured.failures);
    CaseMemory::checkGuards("LSE", memory.lse, measured.failures);
    variant.digest = hashParts({bytesOf(o), bytesOf(lse)});
    if (!measured.failures.empty())
      fail(variant, c, measured.failures, {});
    return measured.failures.empty();
  }

  /// Counts the runs of other bits among the last `count`; the others go on, to tell how often.
  void compare(SoakedVariant &variant, Repeated<uint16_t> &o, Repeated<uint32_t> &lse, int64_t count) {
    std::vector<MemoryPair> pairs;
    for (int64_t i = 0; i < count; ++i)
      for (const MemoryPair &pair : {o.pair(i), lse.pair(i)})
        pairs.push_back(pair);
    const std::vector<int64_t> differences = device.differences(pairs);
    for (int64_t i = 0; i < count; ++i)
      if ((differences[2 * i] || differences[2 * i + 1]) && ++variant.different == 1)
        variant.firstDifferent = variant.repeats + i + 1;
  }

  /// A launch of the next random problem; its case and placements must outlive it.
  struct RandomLaunch {
    SoakedVariant *variant;
    Case testCase;
    Placements places;
    Launch launch;
    std::shared_ptr<FormOnDevice> form;
  };

  std::optional<RandomLaunch> draw(Arena &arena, uint32_t number) {
    for (uint32_t attempt = 0; attempt < kDraws; ++attempt) {
      const uint32_t index = number * kDraws + attempt;
      SoakedVariant &variant = report.variants[philox({index, 0, 0, 2}, ~options.seed)[0] % report.variants.size()];
      const Case c =
          withForm(randomCase(*variant.row, caseOfRow(*variant.set, *variant.row), options.limits, options.seed, index),
                   variant.set->form(*variant.row), options.seed + index);
      RandomLaunch drawn{&variant, c, Placements(c), {}, std::make_shared<FormOnDevice>(device, c.arguments)};
      Launch &launch = drawn.launch;
      launch.problem = describeProblem(c, drawn.places);
      launch.problem.variant = variant.row->variant;
      const std::optional<fagen_choice> choice = choose(device, variant, launch.problem);
      if (!choice) {
        ++report.skipped;
        continue;
      }
      launch.set = variant.set;
      launch.row = variant.row;
      launch.attempt = static_cast<int>(number);
      launch.tensors.q = arena.q.address();
      launch.tensors.k = arena.k.address();
      launch.tensors.v = arena.v.address();
      launch.tensors.o = arena.o.address();
      launch.tensors.lse = c.lse ? reinterpret_cast<float *>(arena.lse.address()) : nullptr;
      launch.workspace = workspaces.of(*variant.row, choice->workspace_bytes);
      return drawn;
    }
    return std::nullopt;
  }

  /// The emulator wants to know what may be touched.
  static void describeMemory(RandomLaunch &drawn) {
    const fagen_tensors &t = drawn.launch.tensors;
    const Placements &p = drawn.places;
    const auto view = [](const char *name, const void *begin, const Placement &place, int64_t word, bool writable) {
      return MemoryView{name, const_cast<void *>(begin), place.span() * word, writable, &place};
    };
    drawn.launch.memory = {view("Q", t.q, p.q, 2, false), view("K", t.k, p.k, 2, false), view("V", t.v, p.v, 2, false),
                           view("O", t.o, p.o, 2, true)};
    if (t.lse)
      drawn.launch.memory.push_back(view("LSE", t.lse, p.lse, 4, true));
    drawn.form->addTo(drawn.launch);
  }

  void launchRandomly() {
    int64_t columns = 1;
    for (const SoakedVariant &variant : report.variants)
      columns = std::max<int64_t>({columns, variant.row->head_dim_qk, variant.row->head_dim_v});
    const int64_t rows = options.limits.batch * options.limits.heads * options.limits.rows;
    Arena arena(device, rows * columns, rows, options.seed);
    uint32_t number = 0;
    for (int64_t done = 0; done < options.launches;) {
      progress(done, options.launches, "random problems");
      std::deque<RandomLaunch> drawn;
      std::vector<Launch> launches;
      for (; drawn.size() < std::min<size_t>(kBatch, options.launches - done); ++number) {
        std::optional<RandomLaunch> next = draw(arena, number);
        if (!next) {
          report.failures.push_back({"fit", fmt::format("no variant takes any of {} random problems", kDraws)});
          return;
        }
        drawn.push_back(std::move(*next));
        describeMemory(drawn.back());
        launches.push_back(drawn.back().launch);
      }
      const Sequence sequence = device.runAll(launches, options.patience);
      for (size_t i = 0; i < sequence.ended; ++i)
        ++drawn[i].variant->launches;
      done += static_cast<int64_t>(sequence.ended);
      if (sequence.failures.empty())
        continue;
      fail(*drawn[sequence.ended].variant, drawn[sequence.ended].testCase, sequence.failures, sequence);
      return;
    }
  }

  TestDevice &device;
  ReferenceEngine &engine;
  const SoakOptions &options;
  const Progress &progress;
  Workspaces workspaces;
  std::string prepared; ///< the case that these are of
  DenseInputs inputs;
  Reference reference;
  SoakReport report;
};

} // namespace

bool SoakReport::passed() const {
  return failures.empty() && !variants.empty() &&
         std::all_of(variants.begin(), variants.end(),
                     [](const SoakedVariant &variant) { return variant.failures.empty(); });
}

SoakReport runSoak(const std::vector<std::unique_ptr<KernelSet>> &sets, TestDevice &device, ReferenceEngine &engine,
                   const SoakOptions &options, const Progress &progress) {
  return Soak(device, engine, options, progress).run(sets);
}

} // namespace fagen::lab
