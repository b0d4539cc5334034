// fagen: checks on a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gpu_device.h"
#include "counters.h"
#include "lab/kernels/kernel_text.h"
#include "runtime/src/state.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <thread>

namespace fagen::lab {

static CuDevicePtr asDevicePtr(const void *memory) { return reinterpret_cast<CuDevicePtr>(memory); }

void *GpuDevice::allocate(int64_t bytes) {
  CuDevicePtr memory = 0;
  checkCuda(measuringDriver().cuMemAlloc(&memory, bytes), fmt::format("allocate {} B", bytes).c_str());
  return reinterpret_cast<void *>(memory);
}

void GpuDevice::release(void *memory) { measuringDriver().cuMemFree(asDevicePtr(memory)); }

/// A copy from pageable memory returns once the bytes are staged; they may reach the GPU later, and a non-blocking
/// stream does not wait for them. So this waits for the null stream, on which such copies run.
void GpuDevice::upload(void *to, const void *from, int64_t bytes) {
  checkCuda(measuringDriver().cuMemcpyHtoD(asDevicePtr(to), from, bytes), "copy to the GPU");
  checkCuda(measuringDriver().cuStreamSynchronize(nullptr), "copy to the GPU");
}

void GpuDevice::download(void *to, const void *from, int64_t bytes) {
  checkCuda(measuringDriver().cuMemcpyDtoH(to, asDevicePtr(from), bytes), "copy from the GPU");
}

Built GpuDevice::build(const Launch &launch) {
  const fagen_table *table = launch.set->table();
  fagen_choice choice = makeAbi<fagen_choice>();
  fagen_status status = fagen_query(&table, 1, &launch.problem, gpu.device(), &choice);
  if (status == FAGEN_OK)
    status = fagen_prepare(&choice, gpu.device());
  if (status != FAGEN_OK)
    return {fmt::format("{}: {}", fagen_status_name(status), fagen_last_error()), "nvrtc"};
  fagen_choice_info info = makeAbi<fagen_choice_info>();
  checkStatus(fagen_choice_get_info(&choice, &info), "describe a choice");
  return {"", info.origin, info.registers, info.local_bytes};
}

std::vector<Failure> GpuDevice::enqueue(const Launch &launch, OwnWorkspace &own) {
  const fagen_table *table = launch.set->table();
  fagen_choice choice = makeAbi<fagen_choice>();
  auto failed = [](const char *call, fagen_status status) {
    return std::vector<Failure>{
        {"launch", fmt::format("{}: {}: {}", call, fagen_status_name(status), fagen_last_error())}};
  };
  if (fagen_status status = fagen_query(&table, 1, &launch.problem, gpu.device(), &choice))
    return failed("fagen_query", status);
  if (fagen_status status = fagen_prepare(&choice, gpu.device()))
    return failed("fagen_prepare", status);
  void *workspace = launch.workspace;
  if (!workspace && choice.workspace_bytes) {
    const std::vector<char> content = makeWorkspace(choice);
    own.bytes = static_cast<int64_t>(content.size());
    workspace = own.memory.emplace(*this, own.bytes).address();
    upload(workspace, content.data(), own.bytes);
  }
  if (fagen_status status = fagen_run(&choice, &launch.tensors, workspace, choice.workspace_bytes, gpu.stream()))
    return failed("fagen_run", status);
  if (loadState(choice).ctas == 0) // nothing was launched that could leave something there
    own.memory.reset();
  return {};
}

std::vector<Failure> GpuDevice::run(const Launch &launch) {
  OwnWorkspace own;
  if (std::vector<Failure> failures = enqueue(launch, own); !failures.empty())
    return failures;
  // An illegal access ends the context: nothing after it could be trusted.
  checkCuda(measuringDriver().cuStreamSynchronize(gpu.stream()), fmt::format("run {}", launch.row->variant).c_str());
  if (!own.memory)
    return {};
  std::vector<char> left(own.bytes);
  download(left.data(), own.memory->address(), own.bytes);
  std::vector<Failure> failures = checkCounter(*launch.row, left);
  if (failures.empty())
    checkWorkspaceLeft(*launch.row, left, failures);
  return failures;
}

namespace {

/// An event after each of some launches.
class Events {
public:
  explicit Events(size_t count) : events(count) {
    for (CuEvent &event : events)
      checkCuda(measuringDriver().cuEventCreate(&event, 2 /* no timing */), "create an event");
  }
  ~Events() {
    for (CuEvent event : events)
      measuringDriver().cuEventDestroy(event);
  }
  Events(const Events &) = delete;
  Events &operator=(const Events &) = delete;
  CuEvent operator[](size_t i) const { return events[i]; }

  /// Success, the error that ended the context, or kCudaNotReady when `seconds` have passed.
  CuResult wait(size_t i, double seconds) const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    CuResult result = measuringDriver().cuEventQuery(events[i]);
    for (; result == kCudaNotReady && std::chrono::steady_clock::now() < until;
         result = measuringDriver().cuEventQuery(events[i]))
      std::this_thread::yield();
    return result;
  }

private:
  std::vector<CuEvent> events;
};

} // namespace

/// Few enough that no call blocks when a kernel hangs: a stream queues about a thousand.
static constexpr size_t kQueued = 128;

Sequence GpuDevice::runAll(const std::vector<Launch> &launches, double patience) {
  Sequence sequence;
  Events events(std::min(kQueued, launches.size()));
  while (sequence.ended < launches.size()) {
    const size_t begin = sequence.ended, count = std::min(kQueued, launches.size() - begin);
    size_t queued = 0;
    OwnWorkspace unused;
    for (; queued < count && sequence.failures.empty(); ++queued) {
      sequence.failures = enqueue(launches[begin + queued], unused);
      checkCuda(measuringDriver().cuEventRecord(events[queued], gpu.stream()), "record an event");
    }
    for (size_t i = 0; i < queued - !sequence.failures.empty(); ++i, ++sequence.ended) {
      const CuResult result = events.wait(i, patience);
      if (result == kCudaSuccess)
        continue;
      sequence.hangs = true; // or the context is gone: as final
      if (result == kCudaNotReady) {
        sequence.failures = {{"hang", fmt::format("it has not ended after {} s", patience)}};
      } else {
        failCuda(result, "run");
        sequence.failures = {{"device", fagen_last_error()}};
      }
      return sequence;
    }
    if (!sequence.failures.empty())
      break;
  }
  return sequence;
}

void GpuDevice::copy(void *to, const void *from, int64_t bytes) {
  checkCuda(measuringDriver().cuMemcpyDtoDAsync(asDevicePtr(to), asDevicePtr(from), bytes, gpu.stream()),
            "copy on the GPU");
}

GpuModule &GpuDevice::soakKernels() {
  if (!soak)
    soak = std::make_unique<GpuModule>(gpu, kSoakText, "soak.cu");
  return *soak;
}

std::vector<int64_t> GpuDevice::differences(const std::vector<MemoryPair> &pairs) {
  constexpr unsigned kCtas = 512, kThreads = 256;
  if (pairs.empty())
    return {};
  std::vector<int64_t> counts(pairs.size());
  const auto bytes = static_cast<int64_t>(counts.size() * sizeof counts[0]);
  DeviceMemory counters(*this, bytes);
  checkCuda(measuringDriver().cuMemsetD32Async(asDevicePtr(counters.address()), 0, bytes / 4, gpu.stream()),
            "clear counters");
  for (size_t i = 0; i < pairs.size(); ++i) {
    const void *a = pairs[i].a, *b = pairs[i].b;
    void *to = counters.address(static_cast<int64_t>(i * sizeof counts[0]));
    unsigned long long words = pairs[i].bytes / sizeof(uint32_t);
    void *arguments[] = {&a, &b, &words, &to};
    checkCuda(fagen::driver()->cuLaunchKernel(soakKernels().function("countDifferences"), kCtas, 1, 1, kThreads, 1, 1,
                                              0, gpu.stream(), arguments, nullptr),
              "compare on the GPU");
  }
  checkCuda(measuringDriver().cuStreamSynchronize(gpu.stream()), "compare on the GPU");
  download(counts.data(), counters.address(), bytes);
  return counts;
}

bool hasGpu() {
  fagen_device *device = nullptr;
  bool present = fagen_device_create(0, &device) == FAGEN_OK;
  fagen_device_destroy(device);
  return present;
}

std::unique_ptr<TestDevice> makeGpuDevice() { return std::make_unique<GpuDevice>(); }

} // namespace fagen::lab
