// fagen: attention as a function of TVM's FFI, which jax-tvm-ffi calls for XLA.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fagen_attention(q, k, v, o, lse, scale, causal, wants_lse, left, right): tensors [..., rows, heads, columns] as XLA
// has them, packed; LSE is
// [..., heads, rows], or has one element and is not written. The structs are those of DLPack 1 and of tvm/ffi/c_api.h,
// which TVM keeps stable. The two functions of TVM that are called are found in the process.
#include "devices.h"

#include <fagen/table.h>

#include <cstdio>
#include <dlfcn.h>
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
constexpr uint8_t kFloat = 2, kBfloat = 4;

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

/// The problem; its dimensions before rows are folded into batches.
const char *describe(const Tensor &q, const Tensor &k, const Tensor &v, double scale, bool causal,
                     fagen_problem &problem) {
  for (const Tensor *tensor : {&q, &k, &v})
    if (tensor->ndim < 4 || tensor->ndim != q.ndim)
      return "q, k and v have at least 4 dimensions, and as many as each other";
  problem.dtype = q.dtype.code == kBfloat ? FAGEN_DTYPE_BF16 : FAGEN_DTYPE_F16;
  if (q.dtype.bits != 16 || (q.dtype.code != kFloat && q.dtype.code != kBfloat))
    return "q is not of float16 or bfloat16";
  problem.mask = causal ? FAGEN_MASK_CAUSAL : FAGEN_MASK_NONE;
  problem.batch = 1;
  for (int i = 0; i < q.ndim - 3; ++i)
    problem.batch *= q.shape[i];
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
  return nullptr;
}

/// A window that is not -1 : -1, bottom-right, as a form of the package: left keys before the row's own, right behind
/// it. `args` must outlive the problem.
void describeWindow(int64_t left, int64_t right, fagen_arg (&args)[2], fagen_problem &problem) {
  if (left < 0)
    return;
  auto number = [](const char *name, int64_t value) {
    fagen_arg arg = {};
    arg.name = name;
    arg.kind = FAGEN_ARG_I32;
    arg.i32 = value;
    return arg;
  };
  problem.mask = 0;
  problem.args = args;
  if (right == 0) {
    problem.form = "window";
    args[0] = number("window", left + 1);
    problem.arg_count = 1;
  } else {
    problem.form = "local";
    args[0] = number("left", left);
    args[1] = number("right", right);
    problem.arg_count = 2;
  }
}

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

int attention(void *, const Any *arguments, int32_t count, Any *result) {
  static constexpr int32_t kTypes[] = {kTensor, kTensor,  kTensor,  kTensor,  kTensor,
                                       kNumber, kInteger, kInteger, kInteger, kInteger};
  if (count != 10)
    return failed("fagen_attention takes q, k, v, o, lse, scale, causal, wants_lse, left, right");
  for (int i = 0; i < 10; ++i)
    if (arguments[i].type != kTypes[i] && !(kTypes[i] == kInteger && arguments[i].type == kBoolean))
      return failed("fagen_attention: an argument is of another type");
  const Tensor &q = *arguments[0].tensor, &k = *arguments[1].tensor, &v = *arguments[2].tensor;
  const Tensor &o = *arguments[3].tensor, &lse = *arguments[4].tensor;
  fagen_problem problem = fagen_problem_init();
  if (const char *error = describe(q, k, v, arguments[5].number, arguments[6].integer, problem))
    return failed(error);
  fagen_arg args[2];
  describeWindow(arguments[8].integer, arguments[9].integer, args, problem);
  fagen_tensors tensors = fagen_tensors_init();
  tensors.q = q.begin();
  tensors.k = k.begin();
  tensors.v = v.begin();
  tensors.o = o.begin();
  if (arguments[7].integer) {
    problem.flags = FAGEN_FLAG_LSE;
    tensors.lse = reinterpret_cast<float *>(lse.begin());
  }
  result->type = 0;
  result->integer = 0;
  return q.device.type == kCpu ? runOnCpu(problem, tensors) : runOnGpu(problem, tensors, q.device.id);
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
