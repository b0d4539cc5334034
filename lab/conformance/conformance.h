// fagen: conformance: does a device compute what the ptx functions say, and does the emulator compute the same?
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A case is a small kernel (kernels/conformance.cu) with a generator of inputs and either the one right result of every
// word, or a bound on how far a result may be from the true value. docs/internals/Arithmetic.md states the bounds.
#pragma once

#include "lab/support/text_table.h"
#include "lab/support/user_error.h"
#include "words.h"

#include <fagen/device/tensor_map.h>
#include <functional>
#include <memory>

namespace fagen::lab {

using WordList = std::vector<uint32_t>;

/// What outputs hold before the launch: a word that is not written shows as wrong.
inline constexpr uint32_t kUnwritten = 0xdeadbeef;

/// A tensor of 16-bit elements without gaps in a kernel's words, and the box that a copy moves.
struct MapShape {
  std::vector<int> sizes;    ///< by dimension; empty: there is no map
  std::vector<unsigned> box; ///< the same
  unsigned swizzle = 0;      ///< bytes of a row
  size_t offsetWords = 0;    ///< where it begins
};
device::TensorMapDescription describeMap(const MapShape &shape, const void *words);

/// Whose text: kernels/conformance.cu, or those of sm_90a only, conformance_sm90a.cu and conformance_bytes.cu.
enum class KernelText { Any, Sm90a, Bytes };

/// A launch of an embedded kernel: input words in, output words out.
struct KernelJob {
  KernelText kernels = KernelText::Any;
  std::string text;
  std::string symbol;
  unsigned grid = 1, threads = 128, sharedBytes = 0;
  MapShape inMap = {}, outMap = {};
  unsigned cluster = 1; ///< CTAs that run together, as the kernel's own text says
  int attempt = 0;      ///< 0, 1, 2: the emulator lands asynchronous copies late, early and at random moments
};

/// The kernels' one parameter, as in kernels/conformance.cu.
struct ConformanceParams {
  const void *in;
  void *out;
  uint64_t outWords;
  device::TensorMap inMap = {}, outMap = {}; ///< kernels/conformance_sm90a.cu only
};

/// Where kernels run.
class KernelRunner {
public:
  virtual ~KernelRunner() = default;
  virtual std::string name() const = 0;
  virtual bool canRun(KernelText) const { return true; }
  /// `out` has the size that the kernel writes. What went wrong, if anything.
  virtual std::string run(const KernelJob &job, const WordList &in, WordList &out) = 0;
};

class GpuDevice;
std::unique_ptr<KernelRunner> makeGpuRunner(GpuDevice &device);
/// UserError in a build without the emulator.
std::unique_ptr<KernelRunner> makeEmulatorRunner();

/// How far one result is from the truth.
struct Deviation {
  double ulp = 0, absolute = 0; ///< ulp: of the true value; of sums, of the largest term where that is larger
  double ofBound = 0; ///< 1: at the bound; a result that is wrong in kind (a number for a NaN) is infinitely far
};

struct Dot;

struct ConformanceCase {
  std::string name;                   ///< "cp_async<16>"
  std::vector<std::string> functions; ///< of the device/ptx headers, that it exercises
  std::string inputs;                 ///< what the inputs are, in words
  std::string symbol;
  KernelText kernels = KernelText::Any;
  MapShape inMap = {}, outMap = {};
  unsigned grid = 1, threads = 128, sharedBytes = 0, cluster = 1;
  size_t inWords = 0, outWords = 0; ///< of the whole grid

  std::function<void(Words &random, unsigned round, WordList &in)> fill;
  size_t operands = 1, results = 1; ///< words of input and output of one element, for messages

  /// Exact cases: the right output.
  std::function<void(const WordList &in, WordList &out)> expect;
  /// Bounded cases: the deviations of all output words, by index.
  std::function<void(const WordList &in, const WordList &out, std::vector<Deviation> &deviations)> judge;
  std::string bound;       ///< in words; empty: exact
  bool isAbsolute = false; ///< part of the bound is absolute
  /// Matrix cases: the terms of an output word.
  std::function<Dot(const WordList &in, size_t index)> dot;

  bool exact() const { return bound.empty(); }
};

/// One case for each device/ptx function and template argument, at least.
const std::vector<ConformanceCase> &conformanceCases();
/// The cases whose name has the pattern in it; a UserError when there are none.
std::vector<const ConformanceCase *> conformanceCases(const std::string &pattern);

/// What one device made of one case.
struct Measurement {
  uint64_t values = 0, wrong = 0; ///< words of output, and those that are not right or beyond the bound
  double maxUlp = 0, maxAbsolute = 0, maxOfBound = 0;
  uint64_t hash = 0;                 ///< of all words of all rounds
  std::vector<std::string> examples; ///< the first few wrong ones
  std::string failure;               ///< the launch's, when it failed
  bool skipped = false;              ///< the device has no such instructions
};

struct CaseReport {
  const ConformanceCase *testCase = nullptr;
  std::vector<Measurement> devices; ///< as ConformanceReport::devices
  uint64_t different = 0;           ///< words that differ between two devices
  bool passed() const;
};

/// How often each way to add gives other bits than a device did.
struct ModelReport {
  struct Candidate {
    std::string name;
    uint64_t different = 0;
    bool stopped = false; ///< counting ended at kEnough
  };
  static constexpr uint64_t kEnough = 1000;

  std::string name; ///< of the case
  uint64_t values = 0;
  std::vector<Candidate> candidates; ///< the best first
};

struct ConformanceReport {
  std::vector<std::string> devices;
  uint64_t seed = 1;
  unsigned rounds = 0;
  std::vector<CaseReport> cases;
  std::vector<ModelReport> models; ///< of the matrix cases: how the first device adds
  bool passed() const;
};

struct ConformanceOptions {
  uint64_t seed = 1;
  unsigned rounds = 8;
  std::string pattern;
  bool study = true; ///< look for the model of accumulation
};

ConformanceReport runConformance(const std::vector<KernelRunner *> &runners, const ConformanceOptions &options,
                                 const std::function<void(size_t, size_t, const std::string &)> &progress);

std::string conformanceTable(const ConformanceReport &report);
/// Wrong results with their operands.
std::string conformanceFailures(const ConformanceReport &report);
Json conformanceJson(const ConformanceReport &report);

/// The words of one case and round; the same on every machine.
WordList conformanceInput(const ConformanceCase &testCase, uint64_t seed, unsigned round);

} // namespace fagen::lab
