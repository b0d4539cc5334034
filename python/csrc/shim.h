// fagen: the functions of PyTorch's C shim that the op calls, found in the libtorch that the process has loaded.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declared here as torch/csrc/inductor/aoti_torch/c/shim.h has them, which PyTorch keeps stable: no header of PyTorch
// is needed to build this, no library of it to link.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace fagen::torch {

using Value = uint64_t;                   ///< StableIValue
using TensorHandle = struct AtenTensor *; ///< owned by who got it
using ListHandle = struct StableList *;   ///< owned likewise
using LibraryHandle = struct TorchLibrary *;
using GuardHandle = struct DeviceGuard *;
using Kernel = void (*)(Value *stack, uint64_t arguments, uint64_t results);

// X(result, name, parameters). All that return int32_t give 0 for success.
#define FAGEN_TORCH_CPU_FUNCTIONS(X)                                                                                   \
  X(int32_t, aoti_torch_library_init_def, (const char *, const char *, uint32_t, LibraryHandle *))                     \
  X(int32_t, aoti_torch_library_init_impl, (const char *, const char *, const char *, uint32_t, LibraryHandle *))      \
  X(int32_t, aoti_torch_library_def, (LibraryHandle, const char *))                                                    \
  X(int32_t, aoti_torch_library_impl, (LibraryHandle, const char *, Kernel))                                           \
  X(int32_t, aoti_torch_get_data_ptr, (TensorHandle, void **))                                                         \
  X(int32_t, aoti_torch_get_dim, (TensorHandle, int64_t *))                                                            \
  X(int32_t, aoti_torch_get_sizes, (TensorHandle, int64_t **))                                                         \
  X(int32_t, aoti_torch_get_strides, (TensorHandle, int64_t **))                                                       \
  X(int32_t, aoti_torch_get_dtype, (TensorHandle, int32_t *))                                                          \
  X(int32_t, aoti_torch_get_device_type, (TensorHandle, int32_t *))                                                    \
  X(int32_t, aoti_torch_get_device_index, (TensorHandle, int32_t *))                                                   \
  X(int32_t, aoti_torch_empty_strided,                                                                                 \
    (int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, TensorHandle *))                            \
  X(int32_t, aoti_torch_delete_tensor_object, (TensorHandle))                                                          \
  X(int32_t, torch_list_size, (ListHandle, size_t *))                                                                  \
  X(int32_t, torch_list_get_item, (ListHandle, size_t, Value *))                                                       \
  X(int32_t, torch_delete_list, (ListHandle))                                                                          \
  X(bool, aoti_torch_grad_mode_is_enabled, ())                                                                         \
  X(void, aoti_torch_check, (bool, const char *, const char *, uint32_t, const char *))                                \
  X(int32_t, aoti_torch_dtype_float16, ())                                                                             \
  X(int32_t, aoti_torch_dtype_bfloat16, ())                                                                            \
  X(int32_t, aoti_torch_dtype_float32, ())                                                                             \
  X(int32_t, aoti_torch_dtype_float8_e4m3fn, ())                                                                       \
  X(int32_t, aoti_torch_dtype_float8_e5m2, ())                                                                         \
  X(int32_t, aoti_torch_dtype_uint8, ())                                                                               \
  X(int32_t, aoti_torch_dtype_bool, ())                                                                                \
  X(int32_t, aoti_torch_dtype_int32, ())                                                                               \
  X(int32_t, aoti_torch_device_type_cpu, ())                                                                           \
  X(int32_t, aoti_torch_device_type_cuda, ())
#define FAGEN_TORCH_CUDA_FUNCTIONS(X)                                                                                  \
  X(int32_t, aoti_torch_get_current_cuda_stream, (int32_t, void **))                                                   \
  X(int32_t, aoti_torch_create_cuda_guard, (int32_t, GuardHandle *))                                                   \
  X(int32_t, aoti_torch_delete_cuda_guard, (GuardHandle))

struct Shim {
#define FAGEN_DECLARE(result, name, parameters) result(*name) parameters = nullptr;
  FAGEN_TORCH_CPU_FUNCTIONS(FAGEN_DECLARE)
  FAGEN_TORCH_CUDA_FUNCTIONS(FAGEN_DECLARE) ///< null where PyTorch was built without CUDA
#undef FAGEN_DECLARE
};

/// Valid once loadShim has succeeded.
const Shim &shim();

/// Finds the functions in these libraries, which are loaded already; `cuda` may be null. Null, or what is missing.
const char *loadShim(const char *cpu, const char *cuda);

template <typename T> T as(Value value) {
  static_assert(sizeof(T) <= sizeof(Value));
  T result;
  std::memcpy(&result, &value, sizeof(T));
  return result;
}

/// An optional of an operator, nothing or a value in memory of its own, which is freed: the shim hands it over so.
template <typename T> std::optional<T> takeOptional(Value value) {
  const auto *const held = as<const Value *>(value);
  if (!held)
    return std::nullopt;
  const T result = as<T>(*held);
  delete held;
  return result;
}

constexpr int32_t kIndexOfCpu = -1; ///< of the CPU's device, which has none

/// What a tensor is. Sizes and strides are the tensor's own.
struct View {
  int64_t rank;
  const int64_t *sizes, *strides;
  int32_t dtype, deviceType, deviceIndex;
  void *data;
};

/// A tensor as the shim tells it.
View viewOf(TensorHandle tensor);

/// A tensor that is released at the end of its scope.
class Tensor {
public:
  explicit Tensor(TensorHandle handle = nullptr) : handle(handle) {}
  Tensor(Tensor &&other) noexcept : handle(other.release()) {}
  Tensor(const Tensor &) = delete;
  Tensor &operator=(Tensor &&other) noexcept {
    std::swap(handle, other.handle);
    return *this;
  }
  ~Tensor() {
    if (handle)
      shim().aoti_torch_delete_tensor_object(handle);
  }

  TensorHandle get() const { return handle; }
  TensorHandle release() {
    TensorHandle released = handle;
    handle = nullptr;
    return released;
  }
  View view() const { return viewOf(handle); }
  void *data() const;

private:
  TensorHandle handle;
};

/// The items of a list, which is released. Tensors among them are owned by the caller then.
std::vector<Value> itemsOf(ListHandle list);

/// A new tensor; its strides are packed in the order of `sizes`.
Tensor emptyTensor(const int64_t *sizes, int rank, int32_t dtype, int32_t deviceType, int32_t deviceIndex);

/// Throws PyTorch's exception, a RuntimeError in Python, with this text.
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

} // namespace fagen::torch
