// fagen: the time that K and V take to arrive.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stream.h"
#include "lab/device/gpu_module.h"
#include "lab/kernels/kernel_text.h"

namespace fagen::lab {

namespace {

constexpr unsigned kCtasPerSm = 4, kThreads = 512;

class StreamWork : public GpuWork {
public:
  explicit StreamWork(GpuTensors &tensors)
      : tensors(tensors), module(tensors.device.gpu, kStreamText, "stream.cu"),
        ctas(kCtasPerSm * tensors.device.gpu.info().sm_count), sink(tensors.device, 256) {}

  bool computesAttention() const override { return false; }

  void enqueue(CuStream stream) override {
    const Shape &s = tensors.problem.shape;
    const int64_t rows = s.batch * s.kvHeads * s.seqKv;
    const void *k = tensors.k.address(), *v = tensors.v.address();
    void *to = sink.address();
    long long ofK = rows * s.headDimQK / 8, ofV = rows * s.headDimV / 8; // 8 elements of 2 bytes
    void *arguments[] = {&k, &v, &ofK, &ofV, &to};
    checkCuda(fagen::driver()->cuLaunchKernel(module.function("streamBoth"), ctas, 1, 1, kThreads, 1, 1, 0, stream,
                                              arguments, nullptr),
              "launch the kernel that reads K and V");
  }

private:
  GpuTensors &tensors;
  GpuModule module;
  unsigned ctas;
  DeviceMemory sink;
};

class Stream : public Baseline {
public:
  std::string unavailable() const override { return ""; }
  std::unique_ptr<GpuWork> prepare(GpuTensors &tensors) override { return std::make_unique<StreamWork>(tensors); }
};

} // namespace

std::unique_ptr<Baseline> makeStream() { return std::make_unique<Stream>(); }

} // namespace fagen::lab
