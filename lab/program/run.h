// fagen: runs a program of the IR on random inputs and compares what it leaves with a reference.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "reference.h"

#include "lab/profile/breakdown.h"
#include "lab/reference/criteria.h"

#include <fagen/device/tensor_map.h>

#include <functional>
#include <memory>

namespace fagen::lab {

/// A program's memory as a runner sees it: each buffer's bytes, dense, on the host.
using ProgramMemory = std::vector<std::vector<unsigned char>>;

/// What a program's time is compared with.
struct ProgramTiming {
  int rounds = 20; ///< in each, each contestant has a turn
  /// Of a product of 16 bits by cuBLAS: rows and columns of the result, length of the sums; zeros: none.
  int64_t productRows = 0, productColumns = 0, productLength = 0;
};

struct ProgramTime {
  std::string name;
  std::string library;              ///< of what is not ours, with its version
  int launches = 0;                 ///< of the program, or of the other, between two readings of the clock
  std::vector<double> microseconds; ///< of one, a turn each
};

/// Where programs run.
class ProgramRunner {
public:
  virtual ~ProgramRunner() = default;
  virtual std::string name() const = 0;
  virtual int64_t sms() const = 0;
  /// For the description of the machine; null where there is none.
  virtual const class Gpu *gpu() const { return nullptr; }
  /// Runs all launches over the memory, which then holds what they left. What went wrong, if anything. On the emulator
  /// `attempt` 0, 1 and 2 land asynchronous copies late, early and at random moments.
  virtual std::vector<Failure> run(const ProgramPlan &plan, const Sizes &sizes, ProgramMemory &memory, int attempt) = 0;
  /// Times all launches over the memory again and again, the program first. UserError where nothing is timed.
  virtual std::vector<ProgramTime> time(const ProgramPlan &plan, const Sizes &sizes, const ProgramMemory &memory,
                                        const ProgramTiming &timing);
};

std::unique_ptr<ProgramRunner> makeEmulatedProgram();
/// UserError where there is no GPU.
std::unique_ptr<ProgramRunner> makeGpuProgram();

struct ProgramOptions {
  bool isTimed = false;
  ProgramTiming timing;
  Sizes sizes;
  std::string reference; ///< empty: results are not compared
  uint64_t seed = 1;
  int64_t sample = 4096; ///< elements of each result that are compared; all where there are no more
  int attempts = 1;
  std::vector<std::string> fills; ///< what buffers that are only read hold, by whole numbers: "begin[b] = 70 * b"
};

/// One result against its statement of the reference.
struct ComparedResult {
  std::string buffer;
  int64_t compared = 0, wrong = 0;
  double worst = 0; ///< error over what is allowed
};

/// Where the warps of a role of a launch were, of all its CTAs.
struct RoleClocks {
  std::string launch, role;
  Breakdown breakdown;
};

struct ProgramReport {
  std::vector<ComparedResult> results;
  std::vector<Failure> failures;  ///< of the runs, and of results that are wrong
  std::vector<ProgramTime> times; ///< the program's first; none where it failed
  std::vector<RoleClocks> clocks; ///< of the last run, where the plan asks for them
};

/// What is only read is standard normal, rounded to its type; what is written begins as NaN. Each attempt begins anew
/// with other inputs. UserError for sizes or a reference that do not suit the plan.
ProgramReport runProgram(const ProgramPlan &plan, ProgramRunner &runner, const ProgramOptions &options);

/// What the warps left in the memory.
std::vector<RoleClocks> readClocks(const ProgramPlan &plan, const Sizes &sizes, const ProgramMemory &memory,
                                   std::vector<Failure> &failures);

// For runners.

std::vector<int64_t> shapeOf(const ProgramBuffer &buffer, const Sizes &sizes);
int64_t elementsOf(const ProgramBuffer &buffer, const Sizes &sizes);
/// The argument of the kernels of a plan that stands alone: pointers to `addresses`, and maps as descriptions, which
/// `encode` gets with the tensor's name and their place. UserError for what the runtime refuses of such a call.
std::vector<unsigned char>
packParams(const ProgramPlan &plan, const Sizes &sizes, const std::vector<const void *> &addresses,
           const std::function<void(const device::TensorMapDescription &, const char *name, void *place)> &encode);
/// Runs a call of a table's program on the emulator, over memory of the host. `source` is the path of the row's text.
/// `attempt` as in ProgramRunner::run.
std::vector<Failure> emulateCall(const std::string &source, const fagen_row &row, const fagen_call &call, int attempt);
/// CTAs of a launch; UserError for a number that no GPU launches.
uint32_t ctasOf(const ProgramLaunch &launch, const Sizes &sizes);

} // namespace fagen::lab
