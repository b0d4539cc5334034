// fagen: loading PyTorch's C shim, and tensors by it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shim.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

namespace fagen::torch {

static Shim functions;

const Shim &shim() { return functions; }

const char *loadShim(const char *cpu, const char *cuda) {
  void *library = dlopen(cpu, RTLD_NOW | RTLD_NOLOAD);
  if (!library)
    return "PyTorch's libtorch_cpu.so is not loaded";
#define FAGEN_FIND(result, name, parameters)                                                                           \
  functions.name = reinterpret_cast<result(*) parameters>(dlsym(library, #name));                                      \
  if (!functions.name)                                                                                                 \
    return "this PyTorch has no " #name "; fagen needs PyTorch 2.10 or later";
  FAGEN_TORCH_CPU_FUNCTIONS(FAGEN_FIND)
  if (cuda && (library = dlopen(cuda, RTLD_NOW | RTLD_NOLOAD))) {
    FAGEN_TORCH_CUDA_FUNCTIONS(FAGEN_FIND)
  }
#undef FAGEN_FIND
  return nullptr;
}

/// Of a function of the shim that failed: it has told PyTorch why.
static void expect(int32_t error, const char *what) {
  if (error)
    fail("fagen.Error: PyTorch's %s failed", what);
}

static void *dataOf(TensorHandle tensor) {
  void *pointer = nullptr;
  expect(shim().aoti_torch_get_data_ptr(tensor, &pointer), "data_ptr");
  return pointer;
}

void *Tensor::data() const { return dataOf(handle); }

View viewOf(TensorHandle tensor) {
  View view = {};
  int64_t *sizes = nullptr, *strides = nullptr;
  expect(shim().aoti_torch_get_dim(tensor, &view.rank), "dim");
  expect(shim().aoti_torch_get_sizes(tensor, &sizes), "sizes");
  expect(shim().aoti_torch_get_strides(tensor, &strides), "strides");
  expect(shim().aoti_torch_get_dtype(tensor, &view.dtype), "dtype");
  expect(shim().aoti_torch_get_device_type(tensor, &view.deviceType), "device");
  expect(shim().aoti_torch_get_device_index(tensor, &view.deviceIndex), "device index");
  view.sizes = sizes;
  view.strides = strides;
  view.data = dataOf(tensor);
  return view;
}

std::vector<Value> itemsOf(ListHandle list) {
  size_t size = 0;
  int32_t error = shim().torch_list_size(list, &size);
  std::vector<Value> items(error ? 0 : size);
  for (size_t i = 0; i < items.size() && !error; ++i)
    error = shim().torch_list_get_item(list, i, &items[i]);
  shim().torch_delete_list(list);
  expect(error, "list");
  return items;
}

Tensor emptyTensor(const int64_t *sizes, int rank, int32_t dtype, int32_t deviceType, int32_t deviceIndex) {
  int64_t strides[4], reach = 1;
  for (int i = rank; i-- > 0;) {
    strides[i] = reach;
    reach *= sizes[i] > 1 ? sizes[i] : 1;
  }
  TensorHandle made = nullptr;
  if (shim().aoti_torch_empty_strided(rank, sizes, strides, dtype, deviceType, deviceIndex, &made))
    fail("fagen.OutOfMemoryError: PyTorch has no memory for %lld elements", static_cast<long long>(reach));
  return Tensor(made);
}

void fail(const char *format, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  shim().aoti_torch_check(false, "fagen::attention", "fagen", 0, text);
  abort(); // aoti_torch_check throws
}

} // namespace fagen::torch
