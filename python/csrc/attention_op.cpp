// fagen: PyTorch's operators fagen::attention and fagen::attention_out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors are [batch, heads, rows, columns], or [batch, rows, heads, columns] where `bshd`; their strides go to the
// kernel as they are. `kernels` is a number of fagen_torch_add_kernels. LSE is [batch, heads, rows]; of the first
// operator it is empty unless `lse`, of the second it is left out where it is empty. Neither operator has a gradient:
// fagen.attention has.
#include "devices.h"
#include "shim.h"
#include "workspace.h"

#include <fagen/table.h>

#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace fagen::torch {
namespace {

constexpr int kMostKernelSets = 1024;

using Emulator = fagen_status (*)(const fagen_problem *problem, const fagen_tensors *tensors, char *error,
                                  size_t errorSize);

using Tables = std::vector<const fagen_table *>;
std::array<std::unique_ptr<const Tables>, kMostKernelSets> kernelSets;
std::atomic<int> kernelSetCount = 0;
Emulator emulator = nullptr;

std::mutex countsMutex;
std::unordered_map<const fagen_row *, uint64_t> counts; ///< launches of each row

/// What an operator was called with, as far as it is no tensor.
struct Options {
  double scale;
  bool causal, bshd;
  int64_t kernels;
};

/// What is in the C ABI's words no problem: said by name.
struct Named {
  const char *name;
  const Tensor &tensor;
};

[[noreturn]] void failWith(fagen_status status) {
  switch (status) {
  case FAGEN_UNSUPPORTED:
    fail("fagen.Unsupported: %s", fagen_last_error());
  case FAGEN_MISALIGNED:
    fail("fagen.Misaligned: %s", fagen_last_error());
  case FAGEN_COMPILE:
    fail("fagen.CompileError: %s", fagen_last_error());
  case FAGEN_CUDA:
    fail("fagen.CudaError: %s", fagen_last_error());
  default:
    fail("fagen.Error: %s", fagen_last_error());
  }
}

void expect(fagen_status status) {
  if (status != FAGEN_OK)
    failWith(status);
}

uint32_t dtypeOf(const Tensor &q) {
  const int32_t dtype = q.dtype();
  if (dtype == shim().aoti_torch_dtype_float16())
    return FAGEN_DTYPE_F16;
  if (dtype == shim().aoti_torch_dtype_bfloat16())
    return FAGEN_DTYPE_BF16;
  fail("fagen.Unsupported: q's dtype; kernels are of float16 and bfloat16");
}

/// Refuses what strides of the C ABI cannot say, and what is no four-dimensional tensor of q's type on q's device.
void checkTensor(const Named &named, const Tensor &q) {
  const Tensor &tensor = named.tensor;
  if (tensor.rank() != 4)
    fail("fagen.Error: %s has %lld dimensions; it has 4", named.name, static_cast<long long>(tensor.rank()));
  if (tensor.dtype() != q.dtype())
    fail("fagen.Error: %s has another dtype than q", named.name);
  if (tensor.deviceType() != q.deviceType() || tensor.deviceIndex() != q.deviceIndex())
    fail("fagen.Error: %s is on another device than q", named.name);
  const int64_t *sizes = tensor.sizes(), *strides = tensor.strides();
  if (sizes[3] > 1 && strides[3] != 1)
    fail("fagen.Unsupported: %s's last stride is %lld; it is 1: take %s.contiguous()", named.name,
         static_cast<long long>(strides[3]), named.name);
  bool isRepeated = false;
  for (int i = 0; i < 3; ++i)
    isRepeated |= sizes[i] > 1;
  if (isRepeated && !strides[0] && !strides[1] && !strides[2]) // which the C ABI would read as packed
    fail("fagen.Unsupported: %s is expanded in every dimension; take %s.contiguous()", named.name, named.name);
}

/// Batch, head and row of a tensor's strides.
void copyStrides(int64_t (&to)[3], const Tensor &tensor, bool bshd) {
  const int64_t *strides = tensor.strides();
  to[0] = strides[0];
  to[1] = strides[bshd ? 2 : 1];
  to[2] = strides[bshd ? 1 : 2];
}

void checkInputs(const Tensor &q, const Tensor &k, const Tensor &v) {
  for (const Named &named : {Named{"q", q}, Named{"k", k}, Named{"v", v}})
    checkTensor(named, q);
}

/// Of tensors that checkInputs has seen.
fagen_problem describe(const Tensor &q, const Tensor &k, const Tensor &v, const Options &options) {
  const int head = options.bshd ? 2 : 1, row = options.bshd ? 1 : 2;
  const int64_t *ofQ = q.sizes(), *ofK = k.sizes(), *ofV = v.sizes();
  if (ofK[0] != ofQ[0] || ofV[0] != ofQ[0])
    fail("fagen.Error: q, k and v have %lld, %lld and %lld batches", static_cast<long long>(ofQ[0]),
         static_cast<long long>(ofK[0]), static_cast<long long>(ofV[0]));
  if (ofK[head] != ofV[head] || ofK[row] != ofV[row])
    fail("fagen.Error: k has %lld heads and %lld rows, v %lld and %lld", static_cast<long long>(ofK[head]),
         static_cast<long long>(ofK[row]), static_cast<long long>(ofV[head]), static_cast<long long>(ofV[row]));
  if (ofK[3] != ofQ[3])
    fail("fagen.Error: q has head_dim %lld, k %lld", static_cast<long long>(ofQ[3]), static_cast<long long>(ofK[3]));
  fagen_problem problem = fagen_problem_init();
  problem.dtype = dtypeOf(q);
  problem.mask = options.causal ? FAGEN_MASK_CAUSAL : FAGEN_MASK_NONE;
  problem.batch = ofQ[0];
  problem.heads = ofQ[head];
  problem.kv_heads = ofK[head];
  problem.seq_q = ofQ[row];
  problem.seq_kv = ofK[row];
  problem.head_dim_qk = ofQ[3];
  problem.head_dim_v = ofV[3];
  problem.scale = static_cast<float>(options.scale);
  problem.has_scale = 1;
  copyStrides(problem.q_stride, q, options.bshd);
  copyStrides(problem.k_stride, k, options.bshd);
  copyStrides(problem.v_stride, v, options.bshd);
  return problem;
}

/// What all base pointers are a multiple of, as far as rows ask.
uint32_t alignmentOf(const fagen_tensors &tensors) {
  uintptr_t bits = 16;
  for (const void *pointer : {tensors.q, tensors.k, tensors.v, static_cast<const void *>(tensors.o)})
    bits |= reinterpret_cast<uintptr_t>(pointer);
  return static_cast<uint32_t>(bits & -bits);
}

const Tables &tablesOf(int64_t kernels) {
  if (kernels < 0 || kernels >= kernelSetCount.load(std::memory_order_acquire))
    fail("fagen.Error: no kernels of number %lld in this process", static_cast<long long>(kernels));
  return *kernelSets[kernels];
}

void count(const fagen_row *row) {
  std::lock_guard lock(countsMutex);
  ++counts[row];
}

void runOnCpu(const fagen_problem &problem, const fagen_tensors &tensors) {
  if (!emulator)
    fail("fagen.Unsupported: tensors are on the CPU; fagen computes on CUDA GPUs");
  char error[2048] = "";
  if (fagen_status status = emulator(&problem, &tensors, error, sizeof(error)))
    fail("fagen.%s: the emulator: %s", status == FAGEN_UNSUPPORTED ? "Unsupported" : "Error", error);
}

/// The device is PyTorch's current one while it lives, and its context this thread's.
class CurrentDevice {
public:
  CurrentDevice(int index, fagen_device *device) {
    if (shim().aoti_torch_create_cuda_guard(index, &guard))
      fail("fagen.CudaError: no CUDA device %d", index);
    expect(fagen_device_make_current(device));
  }
  ~CurrentDevice() { shim().aoti_torch_delete_cuda_guard(guard); }
  CurrentDevice(const CurrentDevice &) = delete;
  CurrentDevice &operator=(const CurrentDevice &) = delete;

private:
  GuardHandle guard = nullptr;
};

void runOnGpu(const fagen_problem &problem, const fagen_tensors &tensors, int64_t kernels, int index) {
  if (!shim().aoti_torch_create_cuda_guard)
    fail("fagen.Unsupported: this PyTorch was built without CUDA");
  const Tables &tables = tablesOf(kernels);
  const char *error = nullptr;
  fagen_device *device = python::deviceOf(index, error);
  if (!device)
    fail("fagen.CudaError: %s", error);
  fagen_choice choice = fagen_choice_init();
  expect(fagen_query(tables.data(), tables.size(), &problem, device, &choice));
  const CurrentDevice current(index, device);
  expect(fagen_prepare(&choice, device));
  void *stream = nullptr;
  if (shim().aoti_torch_get_current_cuda_stream(index, &stream))
    fail("fagen.CudaError: no current stream");
  const auto queue = static_cast<CUstream_st *>(stream);
  const Workspace workspace(choice, {device, index, queue});
  expect(fagen_run(&choice, &tensors, workspace.data(), workspace.bytes(), queue));
  count(choice.row);
}

/// Computes O, and LSE where it is not null. The tensors are checked.
void attend(const Tensor &q, const Tensor &k, const Tensor &v, const Tensor &o, const Tensor *lse,
            const Options &options) {
  fagen_problem problem = describe(q, k, v, options);
  copyStrides(problem.o_stride, o, options.bshd);
  fagen_tensors tensors = fagen_tensors_init();
  tensors.q = q.data();
  tensors.k = k.data();
  tensors.v = v.data();
  tensors.o = o.data();
  if (lse) {
    problem.flags = FAGEN_FLAG_LSE;
    tensors.lse = static_cast<float *>(lse->data());
  }
  problem.alignment = alignmentOf(tensors);
  if (q.deviceType() == shim().aoti_torch_device_type_cpu())
    runOnCpu(problem, tensors);
  else
    runOnGpu(problem, tensors, options.kernels, q.deviceIndex());
}

/// Sizes of O: q's, with v's columns.
std::array<int64_t, 4> sizesOfO(const Tensor &q, const Tensor &v) {
  const int64_t *sizes = q.sizes();
  return {sizes[0], sizes[1], sizes[2], v.sizes()[3]};
}

void attention(Value *stack, uint64_t, uint64_t) {
  const Tensor q(as<TensorHandle>(stack[0])), k(as<TensorHandle>(stack[1])), v(as<TensorHandle>(stack[2]));
  const Options options{as<double>(stack[3]), as<bool>(stack[4]), as<bool>(stack[5]), as<int64_t>(stack[7])};
  const bool wantsLse = as<bool>(stack[6]);
  checkInputs(q, k, v);
  const int32_t device = q.deviceType(), index = q.deviceIndex();
  Tensor o = emptyTensor(sizesOfO(q, v).data(), 4, q.dtype(), device, index);
  const int64_t *sizes = q.sizes();
  const int64_t ofLse[] = {sizes[0], sizes[options.bshd ? 2 : 1], sizes[options.bshd ? 1 : 2]}, none = 0;
  Tensor lse =
      emptyTensor(wantsLse ? ofLse : &none, wantsLse ? 3 : 1, shim().aoti_torch_dtype_float32(), device, index);
  attend(q, k, v, o, wantsLse ? &lse : nullptr, options);
  stack[0] = reinterpret_cast<Value>(o.release());
  stack[1] = reinterpret_cast<Value>(lse.release());
}

/// Refuses an O that is not of the sizes, and an LSE that is not packed.
void checkOutputs(const Tensor &q, const Tensor &v, const Tensor &o, const Tensor &lse, bool bshd) {
  checkTensor({"out", o}, q);
  const std::array<int64_t, 4> wanted = sizesOfO(q, v);
  const int64_t *sizes = o.sizes();
  for (int i = 0; i < 4; ++i)
    if (sizes[i] != wanted[i])
      fail("fagen.Error: out has size %lld in dimension %d; it is %lld", static_cast<long long>(sizes[i]), i,
           static_cast<long long>(wanted[i]));
  if (lse.rank() == 1)
    return;
  const int64_t ofLse[] = {wanted[0], wanted[bshd ? 2 : 1], wanted[bshd ? 1 : 2]};
  int64_t packed = 1;
  for (int i = 3; i-- > 0; packed *= ofLse[i])
    if (lse.rank() != 3 || lse.sizes()[i] != ofLse[i] || (ofLse[i] > 1 && lse.strides()[i] != packed))
      fail("fagen.Error: lse is not packed [batch, heads, rows]");
  if (lse.dtype() != shim().aoti_torch_dtype_float32() || lse.deviceIndex() != q.deviceIndex())
    fail("fagen.Error: lse is not of float32 on q's device");
}

void attentionOut(Value *stack, uint64_t, uint64_t) {
  const Tensor q(as<TensorHandle>(stack[0])), k(as<TensorHandle>(stack[1])), v(as<TensorHandle>(stack[2]));
  const Tensor o(as<TensorHandle>(stack[3])), lse(as<TensorHandle>(stack[4]));
  const Options options{as<double>(stack[5]), as<bool>(stack[6]), as<bool>(stack[7]), as<int64_t>(stack[8])};
  checkInputs(q, k, v);
  checkOutputs(q, v, o, lse, options.bshd);
  attend(q, k, v, o, lse.rank() == 1 ? nullptr : &lse, options);
}

constexpr const char *kAttention = "attention(Tensor q, Tensor k, Tensor v, float scale, bool causal, bool bshd, "
                                   "bool lse, int kernels) -> (Tensor, Tensor)";
constexpr const char *kAttentionOut = "attention_out(Tensor q, Tensor k, Tensor v, Tensor(a!) out, Tensor(b!) lse, "
                                      "float scale, bool causal, bool bshd, int kernels) -> ()";

/// Both operators, for CUDA and CPU. The handles live as long as the process, as the operators do.
const char *defineOperators() {
  LibraryHandle library = nullptr;
  const Shim &s = shim();
  if (s.aoti_torch_library_init_def("fagen", "fagen", 0, &library) || s.aoti_torch_library_def(library, kAttention) ||
      s.aoti_torch_library_def(library, kAttentionOut))
    return "PyTorch refuses the operators' schemas";
  for (const char *key : {"CUDA", "CPU"})
    if (s.aoti_torch_library_init_impl("fagen", key, "fagen", 0, &library) ||
        s.aoti_torch_library_impl(library, "attention", attention) ||
        s.aoti_torch_library_impl(library, "attention_out", attentionOut))
      return "PyTorch refuses the operators' kernels";
  return nullptr;
}

} // namespace
} // namespace fagen::torch

using namespace fagen::torch;

extern "C" {
/// Defines the operators with the PyTorch whose libraries lie at these paths; `cuda` may be null. Once a process. Null,
/// or why not.
FAGEN_API const char *fagen_torch_register(const char *cpu, const char *cuda) {
  static std::once_flag once;
  static const char *error = nullptr;
  std::call_once(once, [&] {
    error = loadShim(cpu, cuda);
    if (!error)
      error = defineOperators();
  });
  return error;
}

/// The number that stands for these tables in calls of the operators; -1 when there are too many. Tables must live on.
FAGEN_API int fagen_torch_add_kernels(const fagen_table *const *tables, size_t tableCount) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  const int number = kernelSetCount.load(std::memory_order_relaxed);
  if (number == kMostKernelSets)
    return -1;
  kernelSets[number] = std::make_unique<Tables>(tables, tables + tableCount);
  kernelSetCount.store(number + 1, std::memory_order_release);
  return number;
}

/// Who computes for tensors on the CPU; null: nobody.
FAGEN_API void fagen_torch_set_emulator(Emulator computes) { emulator = computes; }

/// Calls `each` with every kernel that was launched, and how often.
FAGEN_API void fagen_torch_counts(void (*each)(const char *variant, const char *target, uint64_t launches)) {
  std::lock_guard lock(countsMutex);
  for (const auto &[row, launches] : counts)
    each(row->variant, row->target, launches);
}
}
