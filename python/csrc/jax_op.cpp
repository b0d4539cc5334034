// fagen: attention as a function of TVM's FFI, which jax-tvm-ffi calls for XLA.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fagen_attention(q, k, v[, bias][, visible], o, lse, scale, causal, wants_lse, windowed, left, right): tensors
// [..., rows, heads, columns] as XLA has them, packed; bias, of f32, and visible, of u8, are [..., heads, rows, keys],
// with extents of 1 for what is repeated; LSE is [..., heads, rows], or has one element and is not written. The structs
// are those of DLPack 1 and of tvm/ffi/c_api.h, which TVM keeps stable. The two functions of TVM that are called are
// found in the process.
#include "devices.h"

#include <fagen/table.h>

#include <algorithm>
#include <cstdio>
#include <dlfcn.h>
#include <iterator>
#include <vector>

namespace fagen::jax {
namespace {

struct Device {
  int32_t type, id;
};
constexpr int32_t kCpu = 1, kCuda = 2;

struct Dtype {
  uint8_t code, bits;
  uint16_t lanes;
};
constexpr uint8_t kUnsigned = 1, kFloat = 2, kBfloat = 4;

struct Tensor {
  void *data;
  Device device;
  int32_t ndim;
  Dtype dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byteOffset;

  char *begin() const { return static_cast<char *>(data) + byteOffset; }
  int64_t last(int i) const { return shape[ndim - i]; } ///< 1: columns, 2: heads, 3: rows
};

/// An argument: TVMFFIAny.
struct Any {
  int32_t type;
  uint32_t padding;
  union {
    int64_t integer;
    double number;
    Tensor *tensor;
  };
};
constexpr int32_t kInteger = 1, kBoolean = 2, kNumber = 3, kTensor = 7;

using Emulator = fagen_status (*)(const fagen_problem *problem, const fagen_tensors *tensors, char *error,
                                  size_t errorSize);

struct State {
  void (*raise)(const char *kind, const char *message) = nullptr;
  void *(*streamOf)(int32_t deviceType, int32_t id) = nullptr;
  std::vector<const fagen_table *> tables;
  Emulator emulator = nullptr;
} state;

int failed(const char *reason) {
  state.raise("RuntimeError", reason);
  return -1;
}

/// Dimensions before the last three, folded.
int64_t batchesOf(const Tensor &tensor) {
  int64_t batches = 1;
  for (int i = 0; i < tensor.ndim - 3; ++i)
    batches *= tensor.shape[i];
  return batches;
}

/// That q, k and v are of one type and device and fit each other: nothing past them is read.
const char *checkInputs(const Tensor &q, const Tensor &k, const Tensor &v) {
  for (const Tensor *tensor : {&q, &k, &v}) {
    if (tensor->ndim < 4 || tensor->ndim != q.ndim)
      return "q, k and v have at least 4 dimensions, and as many as each other";
    if (tensor->dtype.code != q.dtype.code || tensor->dtype.bits != q.dtype.bits)
      return "q, k and v are of one type";
    if (tensor->device.type != q.device.type || tensor->device.id != q.device.id)
      return "q, k and v are on one device";
    if (!std::equal(q.shape, q.shape + q.ndim - 3, tensor->shape))
      return "q, k and v have the same batches";
  }
  if (k.last(3) != v.last(3) || k.last(2) != v.last(2))
    return "k and v have the same rows and heads";
  return k.last(1) == q.last(1) ? nullptr : "q and k have the same head_dim";
}

/// The problem; its dimensions before rows are folded into batches.
const char *describe(const Tensor &q, const Tensor &k, const Tensor &v, double scale, bool causal,
                     fagen_problem &problem) {
  if (q.dtype.bits == 16 && q.dtype.code == kFloat)
    problem.dtype = FAGEN_DTYPE_F16;
  else if (q.dtype.bits == 16 && q.dtype.code == kBfloat)
    problem.dtype = FAGEN_DTYPE_BF16;
  else
    return "q is not of float16 or bfloat16";
  problem.mask = causal ? FAGEN_MASK_CAUSAL : FAGEN_MASK_NONE;
  problem.flags = FAGEN_FLAG_EXPLICIT;
  problem.batch = batchesOf(q);
  problem.seq_q = q.last(3);
  problem.heads = q.last(2);
  problem.head_dim_qk = q.last(1);
  problem.seq_kv = k.last(3);
  problem.kv_heads = k.last(2);
  problem.head_dim_v = v.last(1);
  problem.scale = static_cast<float>(scale);
  problem.has_scale = 1;
  auto packed = [](int64_t(&to)[3], int64_t rows, int64_t heads, int64_t columns) {
    to[0] = rows * heads * columns;
    to[1] = columns;
    to[2] = heads * columns;
  };
  packed(problem.q_stride, problem.seq_q, problem.heads, problem.head_dim_qk);
  packed(problem.k_stride, problem.seq_kv, problem.kv_heads, problem.head_dim_qk);
  packed(problem.v_stride, problem.seq_kv, problem.kv_heads, problem.head_dim_v);
  packed(problem.o_stride, problem.seq_q, problem.heads, problem.head_dim_v);
  problem.lse_stride[0] = problem.heads * problem.seq_q;
  problem.lse_stride[1] = problem.seq_q;
  return nullptr;
}

/// A form of the package in the mask's place. It does not move: the problem has its args.
struct Form {
  fagen_arg args[2] = {};
  uint32_t count = 0;

  fagen_arg &add(const char *name, uint32_t kind) {
    fagen_arg &arg = args[count++];
    arg.name = name;
    arg.kind = kind;
    return arg;
  }
  void addTo(const char *form, fagen_problem &problem) const {
    problem.mask = 0;
    problem.form = form;
    problem.args = args;
    problem.arg_count = count;
  }
};

/// A window, bottom-right: left keys before the row's own, right after it.
void describeWindow(int64_t left, int64_t right, Form &form, fagen_problem &problem) {
  if (right == 0) {
    form.add("window", FAGEN_ARG_I32).i32 = left + 1;
    form.addTo("window", problem);
  } else {
    form.add("left", FAGEN_ARG_I32).i32 = left;
    form.add("right", FAGEN_ARG_I32).i32 = right;
    form.addTo("local", problem);
  }
}

/// bias and visible: each [..., heads, rows, keys].
struct Elementwise {
  const Tensor *bias = nullptr, *visible = nullptr;

  const char *take(const Tensor &tensor, const Tensor &q, const Tensor &k) {
    const bool isBias = tensor.dtype.code == kFloat && tensor.dtype.bits == 32;
    const bool isVisible = tensor.dtype.code == kUnsigned && tensor.dtype.bits == 8;
    if (tensor.ndim != q.ndim || !(isBias || isVisible))
      return "bias is of float32, visible of uint8, and both have as many dimensions as q";
    const int64_t sizes[] = {k.last(3), q.last(3), q.last(2)};
    for (int i = 0; i < 3; ++i)
      if (tensor.last(i + 1) != sizes[i] && (i == 0 || tensor.last(i + 1) != 1))
        return "bias and visible are [..., heads, rows, keys], where heads and rows may be 1";
    (isBias ? bias : visible) = &tensor;
    return nullptr;
  }

  /// How many launches a problem takes. vmap gives a bias of one batch for all of a call its own dimensions in front,
  /// and one launch has no stride for both.
  int64_t launches(int64_t batches, int64_t ofCall) const {
    for (const Tensor *tensor : {bias, visible})
      if (tensor && batchesOf(*tensor) != 1 && batchesOf(*tensor) != batches)
        return batches / ofCall;
    return 1;
  }

  /// Of one launch of so many. An extent of 1 is repeated.
  void describe(int64_t launch, int64_t launches, Form &form, fagen_problem &problem) const {
    if (!bias && !visible)
      return;
    for (const auto &[tensor, name, bytes] : {Named{bias, "bias", 4}, Named{visible, "visible", 1}}) {
      if (!tensor)
        continue;
      const int64_t keys = tensor->last(1), rows = tensor->last(2), heads = tensor->last(3);
      const int64_t size = heads * rows * keys, own = batchesOf(*tensor) / launches;
      fagen_arg &arg = form.add(name, FAGEN_ARG_TENSOR);
      const int64_t strides[] = {own > 1 ? size : 0, heads > 1 ? rows * keys : 0, rows > 1 ? keys : 0, 1};
      std::copy(std::begin(strides), std::end(strides), arg.stride);
      arg.data = tensor->begin() + launch * own * size * bytes;
    }
    form.addTo(bias && visible ? "bias_visible" : bias ? "bias" : "visible", problem);
  }

private:
  struct Named {
    const Tensor *tensor;
    const char *name;
    int64_t bytes;
  };
};

int runOnCpu(const fagen_problem &problem, const fagen_tensors &tensors) {
  char error[2048] = "tensors are on the CPU; fagen computes on CUDA GPUs";
  return state.emulator && state.emulator(&problem, &tensors, error, sizeof(error)) == FAGEN_OK ? 0 : failed(error);
}

int runOnGpu(const fagen_problem &problem, const fagen_tensors &tensors, int ordinal) {
  const char *error = nullptr;
  fagen_device *device = python::deviceOf(ordinal, error);
  if (!device)
    return failed(error);
  fagen_choice choice = fagen_choice_init();
  if (fagen_query(state.tables.data(), state.tables.size(), &problem, device, &choice) ||
      fagen_device_make_current(device) || fagen_prepare(&choice, device))
    return failed(fagen_last_error());
  auto *stream = static_cast<CUstream_st *>(state.streamOf(kCuda, ordinal));
  void *workspace = nullptr;
  if (fagen_lend_workspace(&choice, device, stream, &workspace))
    return failed(fagen_last_error());
  return fagen_run(&choice, &tensors, workspace, choice.workspace_bytes, stream) ? failed(fagen_last_error()) : 0;
}

/// What a call is given.
struct Call {
  const Tensor *q, *k, *v, *o, *lse;
  Elementwise elementwise;
  double scale;
  bool isCausal, wantsLse, isWindowed;
  int64_t left, right; ///< where it is windowed

  const char *read(const Any *arguments, int32_t count) {
    static constexpr int32_t kNumbers[] = {kNumber, kInteger, kInteger, kInteger, kInteger, kInteger};
    constexpr int32_t kCount = std::size(kNumbers);
    int32_t tensors = 0;
    while (tensors < count && arguments[tensors].type == kTensor)
      ++tensors;
    if (tensors < 5 || tensors > 7 || count != tensors + kCount)
      return "fagen_attention takes q, k, v, perhaps bias and visible, o, lse, scale, causal, wants_lse, windowed, "
             "left, right";
    const Any *numbers = arguments + tensors;
    for (int i = 0; i < kCount; ++i)
      if (numbers[i].type != kNumbers[i] && !(kNumbers[i] == kInteger && numbers[i].type == kBoolean))
        return "fagen_attention: an argument is of another type";
    q = arguments[0].tensor, k = arguments[1].tensor, v = arguments[2].tensor;
    o = arguments[tensors - 2].tensor, lse = arguments[tensors - 1].tensor;
    if (const char *error = checkInputs(*q, *k, *v))
      return error;
    for (int i = 3; i < tensors - 2; ++i)
      if (const char *error = elementwise.take(*arguments[i].tensor, *q, *k))
        return error;
    scale = numbers[0].number;
    isCausal = numbers[1].integer, wantsLse = numbers[2].integer;
    isWindowed = numbers[3].integer, left = numbers[4].integer, right = numbers[5].integer;
    const bool isElementwise = elementwise.bias || elementwise.visible;
    return isElementwise && (isCausal || isWindowed) ? "with bias or visible, causality and windows are part of visible"
                                                     : nullptr;
  }
};

/// One launch of so many: each has as many batches.
int launch(const Call &call, fagen_problem problem, int64_t launch, int64_t launches) {
  Form form;
  problem.batch /= launches;
  if (call.isWindowed)
    describeWindow(call.left, call.right, form, problem);
  call.elementwise.describe(launch, launches, form, problem);
  const int64_t first = launch * problem.batch;
  fagen_tensors tensors = fagen_tensors_init();
  tensors.q = call.q->begin() + first * problem.q_stride[0] * 2;
  tensors.k = call.k->begin() + first * problem.k_stride[0] * 2;
  tensors.v = call.v->begin() + first * problem.v_stride[0] * 2;
  tensors.o = call.o->begin() + first * problem.o_stride[0] * 2;
  if (call.wantsLse) {
    problem.flags |= FAGEN_FLAG_LSE;
    tensors.lse = reinterpret_cast<float *>(call.lse->begin()) + first * problem.heads * problem.seq_q;
  }
  return call.q->device.type == kCpu ? runOnCpu(problem, tensors) : runOnGpu(problem, tensors, call.q->device.id);
}

int attention(void *, const Any *arguments, int32_t count, Any *result) {
  Call call = {};
  if (const char *error = call.read(arguments, count))
    return failed(error);
  fagen_problem problem = fagen_problem_init();
  if (const char *error = describe(*call.q, *call.k, *call.v, call.scale, call.isCausal, problem))
    return failed(error);
  result->type = 0;
  result->integer = 0;
  const int64_t launches = call.elementwise.launches(problem.batch, call.q->shape[call.q->ndim - 4]);
  for (int64_t i = 0; i < launches; ++i)
    if (launch(call, problem, i, launches))
      return -1;
  return 0;
}

} // namespace
} // namespace fagen::jax

extern "C" {
/// What tvm_ffi.load_module finds as `fagen_attention`.
FAGEN_API int __tvm_ffi_fagen_attention(void *self, const fagen::jax::Any *arguments, int32_t count,
                                        fagen::jax::Any *result) {
  return fagen::jax::attention(self, arguments, count, result);
}

/// Finds TVM's functions in libtvm_ffi.so at this path, and takes the kernels. Null, or what is missing.
FAGEN_API const char *fagen_jax_register(const char *tvm, const fagen_table *const *tables, size_t tableCount) {
  void *library = dlopen(tvm, RTLD_NOW | RTLD_NOLOAD);
  if (!library)
    return "libtvm_ffi.so is not loaded";
  auto &state = fagen::jax::state;
  state.raise = reinterpret_cast<decltype(state.raise)>(dlsym(library, "TVMFFIErrorSetRaisedFromCStr"));
  state.streamOf = reinterpret_cast<decltype(state.streamOf)>(dlsym(library, "TVMFFIEnvGetStream"));
  state.tables.assign(tables, tables + tableCount);
  return state.raise && state.streamOf ? nullptr : "this libtvm_ffi.so is too old: jax-tvm-ffi 0.1.3 is known to do";
}

/// Who computes for tensors on the CPU; null: nobody.
FAGEN_API void fagen_jax_set_emulator(fagen::jax::Emulator computes) { fagen::jax::state.emulator = computes; }
}
