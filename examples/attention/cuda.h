// fagen: the CUDA driver calls of the example, found at run time, so that it builds and starts without CUDA.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <dlfcn.h>
#include <stdexcept>
#include <string>
#include <vector>

namespace cuda {

/// Calls a function of libcuda.so.1; throws when it is missing or fails.
template <typename... Arguments> void call(const char *name, Arguments... arguments) {
  static void *library = dlopen("libcuda.so.1", RTLD_NOW);
  auto function = reinterpret_cast<int (*)(Arguments...)>(library ? dlsym(library, name) : nullptr);
  if (!function || function(arguments...) != 0)
    throw std::runtime_error(std::string(name) + " failed");
}

/// Device memory of `count` values of 16 bits, or as many as `values` has, filled with them.
class Buffer {
public:
  explicit Buffer(size_t count) : bytes(count * 2) { call("cuMemAlloc_v2", &address, bytes); }
  explicit Buffer(const std::vector<unsigned short> &values) : Buffer(values.size()) {
    call("cuMemcpyHtoD_v2", address, static_cast<const void *>(values.data()), bytes);
  }
  Buffer(const Buffer &) = delete;
  ~Buffer() { call("cuMemFree_v2", address); }

  void *data() const { return reinterpret_cast<void *>(address); }
  std::vector<unsigned short> read() const {
    std::vector<unsigned short> values(bytes / 2);
    call("cuMemcpyDtoH_v2", static_cast<void *>(values.data()), address, bytes); // waits for the launch
    return values;
  }

private:
  unsigned long long address = 0;
  size_t bytes;
};

} // namespace cuda
