// fagen: compiles and launches the reference kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gpu_reference.h"
#include "lab/kernels/kernel_text.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace fagen::lab {

/// As in kernels/reference.cu.
struct ReferenceParams {
  CuDevicePtr q, k, v, o, lse, lseLoss, plain, plainLse;
  long long heads, kvHeads, seqQ, seqKv;
  int headDimQK, headDimV, causal;
  DType dtype;
  double scale;
};
static constexpr int kReferenceThreads = 128;
static constexpr int64_t kMaxColumns = 512;

// No contraction: the plain rule is one rounding an operation, as on the CPU.
GpuReference::GpuReference(GpuDevice &device)
    : device(device), module(device.gpu, fmt::format("{}\n{}\n{}", kNumericText, kSumLossText, kReferenceText),
                             "reference.cu", {"-fmad=false"}),
      f64(module.function("referenceF64")), loss(module.function("referenceLoss")),
      plain(module.function("referencePlain")) {}

Reference GpuReference::compute(const Case &c, const DenseInputs &inputs) {
  if (!c.form.empty()) // forms are interpreted, on the CPU
    return CpuReference().compute(c, inputs);
  const Shape &s = c.shape;
  if (std::max(s.headDimQK, s.headDimV) > kMaxColumns || s.rows() > INT32_MAX)
    throw UserError(fmt::format("the GPU reference takes at most head_dim {} and 2^31 - 1 query rows", kMaxColumns));
  Reference reference;
  reference.o.resize(s.oElements());
  reference.plain.resize(s.oElements());
  reference.lse.resize(s.rows());
  reference.lseLoss.resize(c.halfAccum ? 0 : s.rows());
  reference.plainLse.resize(c.halfAccum ? s.rows() : 0);
  if (s.rows() == 0)
    return reference;
  auto place = [&](const std::vector<uint16_t> &values) {
    auto memory = std::make_unique<DeviceMemory>(device, std::max<int64_t>(256, values.size() * 2));
    device.upload(memory->address(), values.data(), static_cast<int64_t>(values.size() * 2));
    return memory;
  };
  auto q = place(inputs.q), k = place(inputs.k), v = place(inputs.v);
  DeviceMemory o(device, s.oElements() * 8), lse(device, s.rows() * 8), rounded(device, s.oElements() * 2);
  DeviceMemory lseLoss(device, s.rows() * 8), plainLse(device, s.rows() * 4);
  auto address = [](const DeviceMemory &memory) { return reinterpret_cast<CuDevicePtr>(memory.address()); };
  ReferenceParams params{address(*q),
                         address(*k),
                         address(*v),
                         address(o),
                         address(lse),
                         address(lseLoss),
                         address(rounded),
                         c.halfAccum ? address(plainLse) : CuDevicePtr(),
                         s.heads,
                         s.kvHeads,
                         s.seqQ,
                         s.seqKv,
                         static_cast<int>(s.headDimQK),
                         static_cast<int>(s.headDimV),
                         c.mask == Mask::Causal,
                         c.dtype,
                         c.scaleValue()};
  void *arguments[] = {&params};
  std::vector<CuFunction> functions = {f64, plain};
  if (!c.halfAccum)
    functions.push_back(loss); // reads what f64 writes
  for (CuFunction function : functions)
    checkCuda(fagen::driver()->cuLaunchKernel(function, static_cast<unsigned>(s.rows()), 1, 1, kReferenceThreads, 1, 1,
                                              0, device.gpu.stream(), arguments, nullptr),
              "launch a reference kernel");
  checkCuda(measuringDriver().cuStreamSynchronize(device.gpu.stream()), "run the reference kernels");
  device.download(reference.o.data(), o.address(), s.oElements() * 8);
  device.download(reference.lse.data(), lse.address(), s.rows() * 8);
  device.download(reference.plain.data(), rounded.address(), s.oElements() * 2);
  if (!c.halfAccum)
    device.download(reference.lseLoss.data(), lseLoss.address(), s.rows() * 8);
  else
    device.download(reference.plainLse.data(), plainLse.address(), s.rows() * 4);
  summarize(reference, c.dtype);
  return reference;
}

bool GpuReference::Agreement::holds() const {
  return o <= 1e-12 && lse <= 1e-12 && lseLoss <= 1e-12 && plainGpu <= 2 * plainCpu && plainCpu <= 2 * plainGpu;
}

GpuReference::Agreement GpuReference::requireAgreement() {
  Agreement agreement = compareWithCpu();
  if (!agreement.holds())
    throw std::runtime_error(fmt::format("the GPU's reference differs from the CPU's by {:.1e} (O), {:.1e} (LSE) and "
                                         "{:.1e} (what tensor cores may lose of it, relative); max |plain - ref| is "
                                         "{:.1e} there and {:.1e} here",
                                         agreement.o, agreement.lse, agreement.lseLoss, agreement.plainGpu,
                                         agreement.plainCpu));
  return agreement;
}

GpuReference::Agreement GpuReference::compareWithCpu() {
  Case c;
  c.shape = {2, 4, 2, 70, 133, 64, 64};
  c.mask = Mask::Causal;
  DenseInputs inputs = makeInputs(c, 1);
  Reference gpu = compute(c, inputs), cpu = CpuReference().compute(c, inputs);
  Agreement agreement{0, 0, 0, gpu.maxPlainError, cpu.maxPlainError};
  for (size_t i = 0; i < cpu.o.size(); ++i)
    agreement.o = std::max(agreement.o, std::abs(gpu.o[i] - cpu.o[i]));
  for (size_t i = 0; i < cpu.lse.size(); ++i)
    if (gpu.lse[i] != cpu.lse[i]) // equal infinities have no difference
      agreement.lse = std::max(agreement.lse, std::abs(gpu.lse[i] - cpu.lse[i]));
  for (size_t i = 0; i < cpu.lseLoss.size(); ++i)
    if (gpu.lseLoss[i] != cpu.lseLoss[i]) // also where both are 0
      agreement.lseLoss = std::max(agreement.lseLoss, std::abs(gpu.lseLoss[i] / cpu.lseLoss[i] - 1));
  return agreement;
}

} // namespace fagen::lab
