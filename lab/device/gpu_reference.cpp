// fagen: compiles and launches the reference kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gpu_reference.h"
#include "lab/cases/form_inputs.h"
#include "lab/kernels/kernel_text.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace fagen::lab {

/// As in kernels/reference.cu.
struct ReferenceParams {
  CuDevicePtr q, k, v, o, lse, lseLoss, plain, plainLse;
  long long heads, kvHeads, seqQ, seqKv;
  int headDimQK, headDimV, causal;
  DType dtype;
  double scale;
  FormView form;
  CuDevicePtr rounding, tanh, moved, undecided;
};
static constexpr int kReferenceThreads = 128, kMostLets = 32, kMostValues = 64;
static constexpr int64_t kMaxColumns = 512;

static std::string referenceText() {
  return fmt::format("{}\n{}\n{}\n{}\n{}", kNumericText, kSumLossText, kFormValueText, kFormProgramText,
                     kReferenceText);
}

// No contraction: the plain rule is one rounding an operation, as on the CPU.
GpuReference::GpuReference(GpuDevice &device)
    : device(device), module(device.gpu, referenceText(), "reference.cu", {"-fmad=false"}) {}

/// Memory of the device that lives as long as the launches.
struct GpuReference::Memories {
  GpuDevice &device;
  std::vector<std::unique_ptr<DeviceMemory>> all;

  CuDevicePtr add(int64_t bytes) {
    all.push_back(std::make_unique<DeviceMemory>(device, std::max<int64_t>(256, bytes)));
    return reinterpret_cast<CuDevicePtr>(all.back()->address());
  }
  template <class Value> CuDevicePtr add(const std::vector<Value> &values) {
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(Value));
    const CuDevicePtr memory = add(bytes);
    device.upload(all.back()->address(), values.data(), bytes);
    return memory;
  }
  template <class Value> const Value *addArray(const std::vector<Value> &values) {
    return reinterpret_cast<const Value *>(add(values));
  }
  template <class Value> void fetch(std::vector<Value> &values, CuDevicePtr from) {
    if (!values.empty())
      device.download(values.data(), reinterpret_cast<void *>(from),
                      static_cast<int64_t>(values.size() * sizeof(Value)));
  }
};

/// The form with its words, lets and tensors on the device.
static FormView upload(const FormData &form, auto &memories) {
  FormView view = form.view;
  view.words = memories.addArray(form.words);
  view.lets = memories.addArray(form.lets);
  std::vector<FormTensorView> tensors = form.tensors;
  for (FormTensorView &tensor : tensors) {
    int64_t count = 1;
    for (int i = 0; i < tensor.rank; ++i)
      count *= tensor.extents[i];
    tensor.values = memories.addArray(std::vector<double>(tensor.values, tensor.values + count));
  }
  view.tensors = memories.addArray(tensors);
  return view;
}

static std::optional<BoundForm> boundForm(const Case &c) {
  if (c.form.empty())
    return std::nullopt;
  if (!c.arguments)
    throw std::logic_error("a case without the arguments of its form");
  return FormProgram(c.arguments->form->texts).bind(c.shape, c.arguments->arguments);
}

Reference GpuReference::compute(const Case &c, const DenseInputs &inputs) {
  if (c.arguments && !ofForms.contains(c.form))
    compareForm(c);
  return computeHere(c, inputs);
}

Reference GpuReference::computeHere(const Case &c, const DenseInputs &inputs) {
  const Shape &s = c.shape;
  if (std::max(s.headDimQK, s.headDimV) > kMaxColumns || s.rows() > INT32_MAX)
    throw UserError(fmt::format("the GPU reference takes at most head_dim {} and 2^31 - 1 query rows", kMaxColumns));
  const std::optional<BoundForm> form = boundForm(c);
  if (form && form->programs().view.vScale.size != 0)
    return CpuReference().compute(c, inputs);
  if (form && (form->programs().depth > kMostValues || form->programs().lets.size() > kMostLets))
    return CpuReference().compute(c, inputs);
  Reference reference = emptyReference(c);
  if (s.rows() == 0)
    return reference;
  Memories memories{device, {}};
  ReferenceParams params{memories.add(inputs.q),
                         memories.add(inputs.k),
                         memories.add(inputs.v),
                         memories.add(s.oElements() * 8),
                         memories.add(s.rows() * 8),
                         c.halfAccum ? CuDevicePtr() : memories.add(s.rows() * 8),
                         memories.add(s.oElements() * 2),
                         c.halfAccum ? memories.add(s.rows() * 4) : CuDevicePtr(),
                         s.heads,
                         s.kvHeads,
                         s.seqQ,
                         s.seqKv,
                         static_cast<int>(s.headDimQK),
                         static_cast<int>(s.headDimV),
                         c.mask == Mask::Causal,
                         c.dtype,
                         c.scaleValue(),
                         {},
                         memories.add(s.rows() * 8),
                         memories.add(s.rows() * 8),
                         memories.add(s.rows() * 8 * kMoves),
                         memories.add(s.rows())};
  if (form)
    params.form = upload(form->programs(), memories);
  if (form && !ofFormsModule)
    ofFormsModule.emplace(device.gpu, referenceText() + kFormReferenceText, "form_reference.cu",
                          std::vector<std::string>{"-fmad=false"});
  std::vector<CuFunction> functions; // losses need what f64 writes
  if (form)
    functions = {ofFormsModule->function("formF64"), ofFormsModule->function("formPlain"),
                 ofFormsModule->function("formLoss")};
  else
    functions = {module.function("referenceF64"), module.function("referencePlain")};
  if (!form && !c.halfAccum)
    functions.push_back(module.function("referenceLoss"));
  void *arguments[] = {&params};
  for (CuFunction function : functions)
    checkCuda(fagen::driver()->cuLaunchKernel(function, static_cast<unsigned>(s.rows()), 1, 1, kReferenceThreads, 1, 1,
                                              0, device.gpu.stream(), arguments, nullptr),
              "launch a reference kernel");
  checkCuda(measuringDriver().cuStreamSynchronize(device.gpu.stream()), "run the reference kernels");
  memories.fetch(reference.o, params.o);
  memories.fetch(reference.lse, params.lse);
  memories.fetch(reference.plain, params.plain);
  memories.fetch(reference.lseLoss, params.lseLoss);
  memories.fetch(reference.plainLse, params.plainLse);
  memories.fetch(reference.form.rounding, params.rounding);
  memories.fetch(reference.form.tanh, params.tanh);
  memories.fetch(reference.form.undecided, params.undecided);
  if (form) {
    std::vector<double> moved(s.rows() * kMoves);
    memories.fetch(moved, params.moved);
    for (size_t i = 0; i < moved.size(); ++i)
      reference.form.o[i % kMoves] = std::max(reference.form.o[i % kMoves], moved[i]);
  }
  summarize(reference, c.dtype);
  return reference;
}

bool GpuReference::Agreement::holds() const {
  return o <= 1e-12 && lse <= 1e-12 && lseLoss <= 1e-12 && formErrors <= 1e-9 && otherUndecided == 0 &&
         plainGpu <= 2 * plainCpu && plainCpu <= 2 * plainGpu;
}

/// `difference`, which is none where both are the same infinity, 0, or no number; and no end where only one is.
static double differenceOf(double a, double b, double difference) {
  if (a == b || (std::isnan(a) && std::isnan(b)))
    return 0;
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
}
/// What f64 has too few bits for is equal.
static double relative(double a, double b) {
  return differenceOf(a, b, std::abs(a - b) / std::max(std::abs(b), 0x1p-960));
}

/// A score of 10^6 has seven digits fewer after the point. What f32 may be off (2^-23 of all that an operation gives)
/// says how large a row's numbers are: f64 may be off 2^-29 of it.
GpuReference::Agreement GpuReference::compare(const Reference &gpu, const Reference &cpu) {
  constexpr double kOfErrors = 1e4;
  const bool hasForm = !cpu.form.rounding.empty();
  Agreement agreement{0, 0, 0, gpu.maxPlainError, cpu.maxPlainError};
  const double unitOfO = 1 + kOfErrors * cpu.form.o[0];
  for (size_t i = 0; i < cpu.o.size(); ++i)
    agreement.o = std::max(agreement.o, differenceOf(gpu.o[i], cpu.o[i], std::abs(gpu.o[i] - cpu.o[i]) / unitOfO));
  for (size_t i = 0; i < cpu.lse.size(); ++i) {
    const double unit = hasForm ? 1 + kOfErrors * cpu.form.rounding[i] + cpu.form.tanh[i] : 1;
    agreement.lse =
        std::max(agreement.lse, differenceOf(gpu.lse[i], cpu.lse[i], std::abs(gpu.lse[i] - cpu.lse[i]) / unit));
    if (!hasForm)
      continue;
    agreement.otherUndecided += gpu.form.undecided[i] != cpu.form.undecided[i];
    if (cpu.form.undecided[i]) // then the CPU stops adding
      continue;
    agreement.formErrors = std::max({agreement.formErrors, relative(gpu.form.rounding[i], cpu.form.rounding[i]),
                                     relative(gpu.form.tanh[i], cpu.form.tanh[i])});
  }
  for (size_t i = 0; i < cpu.lseLoss.size(); ++i)
    if (!hasForm || !cpu.form.undecided[i])
      agreement.lseLoss = std::max(agreement.lseLoss, relative(gpu.lseLoss[i], cpu.lseLoss[i]));
  for (size_t kind = 0; kind < kMoves; ++kind)
    agreement.formErrors = std::max(agreement.formErrors, relative(gpu.form.o[kind], cpu.form.o[kind]));
  return agreement;
}

static std::string describe(const GpuReference::Agreement &agreement) {
  return fmt::format(
      "the GPU's reference differs from the CPU's by {:.1e} (O), {:.1e} (LSE), {:.1e} (what tensor cores "
      "may lose of it, relative), {:.1e} (what f32 may make of a form, relative) and in {} rows that one "
      "of them leaves out; max |plain - ref| is {:.1e} there and {:.1e} here",
      agreement.o, agreement.lse, agreement.lseLoss, agreement.formErrors, agreement.otherUndecided, agreement.plainGpu,
      agreement.plainCpu);
}

GpuReference::Agreement GpuReference::compareWithCpu(const Case &c) {
  const DenseInputs inputs = makeInputs(c, 1);
  return compare(computeHere(c, inputs), CpuReference().compute(c, inputs));
}

GpuReference::Agreement GpuReference::requireAgreement() {
  Case c;
  c.shape = {2, 4, 2, 70, 133, 64, 64};
  c.mask = Mask::Causal;
  const Agreement agreement = compareWithCpu(c);
  if (!agreement.holds())
    throw std::runtime_error(describe(agreement));
  return agreement;
}

void GpuReference::compareForm(const Case &c) {
  Case small = c;
  small.shape = {2, 4, 2, 21, 45, 32, 32};
  small.layout = Layout::Bhsd;
  small.inputs = Inputs::Normal;
  small.scale.reset();
  const Case ready = withForm(small, c.arguments->form, 1);
  const Agreement agreement = compareWithCpu(ready);
  if (!agreement.holds())
    throw std::runtime_error(fmt::format("{}, for form '{}'", describe(agreement), c.form));
  ofForms.emplace(c.form, agreement);
}

} // namespace fagen::lab
