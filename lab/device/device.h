// fagen: where checks run: a GPU through the runtime, or the CPU through the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "emulator/emulator.h"
#include "lab/cases/abi.h"
#include "lab/kernel_set/manifest.h"
#include "lab/reference/criteria.h"

#include <functional>
#include <memory>

namespace fagen::lab {

/// The device cannot go on: its context is lost, or memory ran out. Ends a check with the results so far.
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Placement;
struct FormMemory;

/// What a row's manifest says of its arithmetic.
inline Arithmetic arithmeticOf(const RowFacts &facts) { return {productsOf(facts.mma), tanhOf(facts.tanh)}; }

/// A part of memory that the kernel may touch.
struct MemoryView {
  std::string name;
  void *begin = nullptr;
  int64_t bytes = 0;
  bool writable = false;
  const Placement *placement = nullptr; ///< of the tensor that lies there, with gaps perhaps
  const FormMemory *form = nullptr;     ///< of the form's tensor that lies there, likewise
};

/// One launch: a row of a kernel set on a problem whose tensors lie in the device's memory.
struct Launch {
  const KernelSet *set = nullptr;
  const fagen_row *row = nullptr;
  fagen_problem problem = makeAbi<fagen_problem>(); ///< names the row's variant
  fagen_tensors tensors = makeAbi<fagen_tensors>();
  std::vector<MemoryView> memory;
  void *workspace = nullptr; ///< null: the device takes memory of its own, zeroed as far as the row asks
  int attempt = 0; ///< the emulator's seed; modulo 3 it lands asynchronous copies late, early or at random moments
};

/// What became of a row's text.
struct Built {
  std::string failure;                 ///< the compiler's words; empty: it can be launched
  std::string by;                      ///< who compiled: "cubin", "nvrtc", "c++"
  int registers = -1, localBytes = -1; ///< a thread's, by the driver; -1: not told
};

/// A launch leaves its workspace zeroed, as fagen_run promises, or a trace in it.
void checkWorkspaceLeft(const fagen_row &row, const std::vector<char> &workspace, std::vector<Failure> &failures);

/// What became of several launches.
struct Sequence {
  size_t ended = 0;              ///< without a failure
  std::vector<Failure> failures; ///< of the launch after those
  bool hangs = false;            ///< that launch did not end: nothing else can be asked of the device
};

/// Work that goes on during launches.
class Load {
public:
  virtual ~Load() = default;
};

/// Two places to compare; `bytes` is a multiple of 4.
struct MemoryPair {
  const void *a, *b;
  int64_t bytes;
};

class TestDevice {
public:
  virtual ~TestDevice() = default;

  virtual std::string name() const = 0; ///< "NVIDIA H200", "emulator"
  /// The device to query rows for; the emulator has one for each target.
  virtual fagen_device *queryDevice(const fagen_row &row) = 0;
  /// Bytes that one tensor may take here; cases with a larger one are left to other devices.
  virtual int64_t largestTensor() const = 0;
  /// 256-byte aligned.
  virtual void *allocate(int64_t bytes) = 0;
  virtual void release(void *memory) = 0;
  virtual void upload(void *to, const void *from, int64_t bytes) = 0;
  virtual void download(void *to, const void *from, int64_t bytes) = 0;
  /// Compiles and loads what the launch needs.
  virtual Built build(const Launch &launch) = 0;
  /// Launches and waits. What went wrong, if anything.
  virtual std::vector<Failure> run(const Launch &launch) = 0;

  /// Launches them one after the other and waits at the end only, where the device can; stops at the first failure.
  /// `patience` is in seconds without any launch ending. Each launch has its workspace.
  virtual Sequence runAll(const std::vector<Launch> &launches, double patience);
  /// Copies from memory of the device to memory of the device, before what is launched later.
  virtual void copy(void *to, const void *from, int64_t bytes);
  /// How many 32-bit words differ in each pair, once what was launched has ended.
  virtual std::vector<int64_t> differences(const std::vector<MemoryPair> &pairs);
  /// Work during the launches, from now until it is destroyed; null where there is none to be had.
  virtual std::unique_ptr<Load> load() { return nullptr; }
};

/// Memory of a device, released at the end of its scope.
class DeviceMemory {
public:
  DeviceMemory(TestDevice &device, int64_t bytes) : device(device), memory(device.allocate(bytes)) {}
  ~DeviceMemory() { device.release(memory); }
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;
  char *address(int64_t offset = 0) const { return static_cast<char *>(memory) + offset; }

private:
  TestDevice &device;
  void *memory;
};

/// What a command wants of the emulator beyond results.
struct EmulatorHooks {
  /// Called before each launch of the row, which is the `index`-th, with the options that are about to be used.
  std::function<void(const Launch &launch, uint32_t index, emulator::Options &options)> prepare;
  /// Called after it.
  std::function<void(const Launch &launch, uint32_t index, const emulator::Report &report)> observe;
};

/// Throws UserError when there is no GPU, or no emulator in this build.
std::unique_ptr<TestDevice> makeGpuDevice();
inline constexpr const char *kNoEmulator =
    "this build of fagen-run has no emulator; build it where Boost.Context is installed";
std::unique_ptr<TestDevice> makeEmulatorDevice(EmulatorHooks hooks = {});

} // namespace fagen::lab
